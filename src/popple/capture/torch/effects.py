"""What running a traced graph does besides returning results: writes, random draws.

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
    storages = find_storages(traced)
    written = written_storages(traced, storages)
    given = (n for n in traced.graph.nodes if n.op in ("placeholder", "get_attr"))
    return [node for node in given if storages.get(node) in written]


def overwritten_arguments(traced: GraphModule) -> list[int]:
    """Positions of the arguments that running the graph overwrites."""
    placeholders = traced.graph.find_nodes(op="placeholder")
    positions = {node: index for index, node in enumerate(placeholders)}
    return [positions[n] for n in find_overwritten(traced) if n in positions]


def find_storages(traced: GraphModule) -> dict[Node, int]:
    """The memory of each node that stands for a tensor, as a number.

    Several nodes may stand for one constant; tracing gives each memory of its own.
    """
    raw: dict[Node, int] = {
        node: value.untyped_storage()._cdata
        for node in traced.graph.nodes
        if isinstance(value := node.meta.get("val"), Tensor)
    }
    # Nodes of one constant count as one memory, or a write through one would be missed
    # when another is read.
    constants = [n for n in traced.graph.find_nodes(op="get_attr") if n in raw]
    first: dict[object, int] = {}
    same: dict[int, int] = {
        raw[n]: first.setdefault(n.target, raw[n]) for n in constants
    }
    return {node: same.get(storage, storage) for node, storage in raw.items()}


def written_storages(traced: GraphModule, storages: dict[Node, int]) -> set[int]:
    """The memory that the graph's operators write to."""
    return {
        storages[argument]
        for node in traced.graph.nodes
        for argument in written_arguments(node)
        if argument in storages
    }


def written_arguments(node: Node) -> Iterator[Node]:
    """The arguments an operator, or a loop, writes to."""
    for position in getattr(node.target, "written", ()):
        yield from _nodes_in(node.args[position])
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


def is_random(node: Node) -> bool:
    """Whether a node draws random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
