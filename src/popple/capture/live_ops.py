"""Ops that matter: what a captured graph keeps of what the program says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from popple.graph import Graph, Op, Role, Value, get_op


def without_dead_ops(graph: Graph, results: set[str]) -> Graph:
    """Drop ops whose results nobody reads and that write to nothing that matters.

    What an op without results does it does outside the graph: it stays.
    """
    needed = set(graph.outputs) | results
    read = {graph.root(name) for name in needed}
    kept: list[Op] = []
    for op in reversed(graph.ops):
        is_read = not op.outputs or not needed.isdisjoint(op.outputs)
        if not is_read and not _writes_to(graph, op, read):
            continue
        kept.append(op)
        needed.update(op.inputs)
        read.update(graph.root(name) for name in op.inputs)
    used = needed | {name for op in kept for name in op.outputs}
    used |= {graph.root(name) for name in used}
    values = {
        name: value
        for name, value in graph.values.items()
        if name in used or value.role in (Role.INPUT, Role.WEIGHT, Role.STATE)
    }
    values = _with_whole_storage(graph.values, values)
    return replace(graph, values=values, ops=tuple(reversed(kept)))


def _writes_to(graph: Graph, op: Op, read: set[str]) -> bool:
    """Whether the op overwrites a given value, or memory that is read after it."""
    if get_op(op.kind).is_view:
        return False
    owners = {graph.root(name) for name in op.outputs} - set(op.outputs)
    given = any(graph.values[o].role is not Role.ACTIVATION for o in owners)
    return given or not owners.isdisjoint(read)


def _with_whole_storage(
    everything: Mapping[str, Value], kept: Mapping[str, Value]
) -> dict[str, Value]:
    """Let kept values share with their kept owner when links between are dropped."""
    result: dict[str, Value] = {}
    for name, value in kept.items():
        storage = value.storage
        while storage and storage not in kept:
            storage = everything[storage].storage
        result[name] = replace(value, storage=storage)
    return result
