"""Remove ops that nothing depends on, and the values that only they know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from popple.graph import Graph, Op, Role, Value, get_op, num_sites


@dataclass(frozen=True)
class RemoveDead:
    """Drops ops whose results nobody reads and that overwrite nothing of importance.

    `kept` are values that are read though no op of the graph reads them yet: gradients,
    before `UpdateWeights` adds the ops that do. An op without results does what it does
    outside the graph, so it stays. Front ends run this pass themselves, when they have
    written all of a program: what is not run is no part of what they captured.
    Functions that nobody runs go as well.
    """

    kept: frozenset[str] = frozenset()

    def apply(self, graph: Graph) -> Graph:
        """The graph without dead ops and functions."""
        live = _without_dead(graph, self.kept)
        bodies = live.with_bodies(lambda body: _without_dead(body, frozenset()))
        return _without_unused(bodies)


def _without_dead(graph: Graph, kept: frozenset[str]) -> Graph:
    needed = {*graph.outputs, *kept}
    read = {graph.root(name) for name in needed}
    live: list[Op] = []
    # Backwards, so that all readers of a value are known before its maker is met.
    for op in reversed(graph.ops):
        is_read = not op.outputs or not needed.isdisjoint(op.outputs)
        if not is_read and not _writes_to(graph, op, read):
            continue
        live.append(op)
        needed.update(op.inputs)
        read.update(graph.root(name) for name in op.inputs)
    used = needed | {name for op in live for name in op.outputs}
    values = _used_values(graph, used)
    return replace(graph, values=values, ops=tuple(reversed(live)))


def _without_unused(graph: Graph) -> Graph:
    """Functions are dropped until all that are left are run somewhere."""
    if not graph.functions:
        return graph
    used = num_sites(graph)
    if used.keys() >= graph.functions.keys():
        return graph
    left = {name: body for name, body in graph.functions.items() if name in used}
    return _without_unused(replace(graph, functions=left))


def _writes_to(graph: Graph, op: Op, read: set[str]) -> bool:
    """Whether the op overwrites a given value, or memory that is read after it."""
    if get_op(op.kind).is_view:
        return False  # its result shares memory, but it writes nothing there
    owners = {graph.root(name) for name in op.outputs} - set(op.outputs)
    given = any(graph.values[o].role is not Role.ACTIVATION for o in owners)
    return given or not owners.isdisjoint(read)


def _used_values(graph: Graph, used: set[str]) -> dict[str, Value]:
    """Values that are used or own the memory of one, and all that a program is given.

    Constants are not given but written down: one that nobody uses goes.
    """
    owners = {graph.root(name) for name in used}
    kept = {
        name: value
        for name, value in graph.values.items()
        if name in used
        or name in owners
        or value.role in (Role.INPUT, Role.WEIGHT, Role.STATE, Role.ARGUMENT)
    }
    return _with_whole_storage(graph.values, kept)


def _with_whole_storage(
    everything: Mapping[str, Value], kept: Mapping[str, Value]
) -> dict[str, Value]:
    """Let kept values share with their kept owner when links between are dropped."""
    result: dict[str, Value] = {}
    for name, value in kept.items():
        storage = value.storage
        while storage and storage not in kept:
            storage = everything[storage].storage
        is_same = storage == value.storage
        result[name] = value if is_same else replace(value, storage=storage)
    return result
