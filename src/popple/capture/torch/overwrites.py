"""What running a traced graph overwrites: its arguments and constants.

Operators say in their schema which arguments they write to; what those share memory
with is read from the storages of the fake tensors that tracing left behind.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch.fx import GraphModule, Node


def find_overwritten(traced: GraphModule) -> list[Node]:
    """Placeholders and constants whose memory running the graph overwrites."""
    written = written_storages(traced)
    given = (n for n in traced.graph.nodes if n.op in ("placeholder", "get_attr"))
    return [node for node in given if storage_of(node) in written]


def overwritten_arguments(traced: GraphModule) -> list[int]:
    """Positions of the arguments that running the graph overwrites."""
    placeholders = traced.graph.find_nodes(op="placeholder")
    positions = {node: index for index, node in enumerate(placeholders)}
    return [positions[n] for n in find_overwritten(traced) if n in positions]


def written_storages(traced: GraphModule) -> set[int]:
    """Storages, as `storage_of` names them, that the graph's operators write to."""
    return {
        storage
        for node in traced.graph.nodes
        for argument in _written_arguments(node)
        if (storage := storage_of(argument)) is not None
    }


def storage_of(node: Node) -> int | None:
    """What a node's tensor shares with all tensors of the same memory."""
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, Tensor) else None


def _written_arguments(node: Node) -> Iterator[Node]:
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None:
        return
    yield from _nodes_in(_undeclared(node))
    for index, declared in enumerate(schema.arguments):
        if declared.alias_info is not None and declared.alias_info.is_write:
            by_name = node.kwargs.get(declared.name)
            given = node.args[index] if index < len(node.args) else by_name
            yield from _nodes_in(given)


def _undeclared(node: Node) -> object:
    """Arguments an operator writes to without saying so: the running statistics."""
    if node.target is not torch.ops.aten.native_batch_norm.default:
        return ()
    _, _, _, mean, variance, is_training, *_ = node.args
    return (mean, variance) if is_training else ()


def _nodes_in(argument: object) -> Iterator[Node]:
    leaves = pytree.tree_leaves(argument)
    return (leaf for leaf in leaves if isinstance(leaf, Node))
