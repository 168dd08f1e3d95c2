"""Views and storage of values in a traced graph; views that change nothing are dropped.

Views that show a tensor as it is are dropped: a run does without them. Differentiating
a linear layer transposes its weight there and back, for one.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Graph, Node

Storage = int | None
"""What tensors that share memory have in common; None for what is no tensor."""

SILENT_WRITERS = frozenset({torch.ops.aten.native_batch_norm.default})
"""Operators that write to their running statistics and do not say so."""


def overwrites(node: Node) -> bool:
    """Whether an operator may write to what it is given."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    return node.target._schema.is_mutable or node.target in SILENT_WRITERS


def storage_of(node: Node) -> Storage:
    """The memory of a node's value, as long as the graph lives."""
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, Tensor) else None


def looks_alike(first: Node, second: Node) -> bool:
    """Whether two values have the same type and the same layout."""
    a, b = first.meta.get("val"), second.meta.get("val")
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return False
    same_type = a.dtype is b.dtype and a.device == b.device and a.layout is b.layout
    return same_type and a.shape == b.shape and a.stride() == b.stride()


def changes_layouts(graph: Graph) -> bool:
    """Whether tensors change their shape in place: what was seen may not last."""
    tags = (getattr(node.target, "tags", ()) for node in graph.nodes)
    return any(torch.Tag.inplace_view in found for found in tags)


def drop_idle_views(graph: Graph) -> None:
    """Let the readers of a view read what it is a view of, where that is the same."""
    if changes_layouts(graph):
        return
    for node in list(graph.nodes):
        original = _same_as(node)
        if original is not None:
            node.replace_all_uses_with(original)
            graph.erase_node(node)


def _same_as(view: Node) -> Node | None:
    """What a view is of, directly or through others, and what looks the same."""
    source = view
    while _is_view(source):
        source = source.all_input_nodes[0]
        if storage_of(source) != storage_of(view):
            return None
        if looks_alike(source, view) and _begins_alike(source, view):
            return source
    return None


def _is_view(node: Node) -> bool:
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    schema = node.target._schema
    is_alias = [r.alias_info is not None for r in schema.returns] == [True]
    return is_alias and not schema.is_mutable and len(node.all_input_nodes) == 1


def _begins_alike(first: Node, second: Node) -> bool:
    a: Tensor = first.meta["val"]
    b: Tensor = second.meta["val"]
    # Conjugation and negation of complex tensors are bits of a view, not of memory.
    same_reading = a.is_conj() == b.is_conj() and a.is_neg() == b.is_neg()
    return same_reading and a.storage_offset() == b.storage_offset()
