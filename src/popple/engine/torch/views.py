"""Views that show a tensor as it is: a run does without them.

Differentiating a linear layer transposes its weight there and back, for one.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Graph, Node

from popple.engine.torch.storages import changes_layouts, looks_alike, storage_of


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
    same_reading = a.is_conj() == b.is_conj() and a.is_neg() == b.is_neg()
    return same_reading and a.storage_offset() == b.storage_offset()
