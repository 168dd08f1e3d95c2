"""Which tensors of a traced graph share memory, as the tensors seen in tracing tell."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Graph, Node

Storage = int | None
"""What tensors that share memory have in common; None for what is no tensor."""


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
