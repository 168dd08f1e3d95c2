"""Results of loops that nobody reads: the loops no longer carry them.

While a loop is written nobody knows what will be read behind it. The forward pass keeps
more for the backward pass than this reads in the end: places in lists, last states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from popple.graph import LOOPS, Graph, Op, functions_of, num_sites

_Positions = frozenset[int]


def without_unread_results(graph: Graph, kept: Iterable[str]) -> Graph:
    """The graph with loops that only carry what is needed; `kept` are results too."""
    sites = num_sites(graph)
    functions = dict(graph.functions)
    main = _trimmed(graph, set(kept), functions, sites)
    # Callers before what they run: a loop in a body that gives less is read less.
    waiting = [name for op in main.ops for name in functions_of(op)]
    done: set[str] = set()
    while waiting:
        name = waiting.pop(0)
        if name not in done:
            done.add(name)
            functions[name] = _trimmed(functions[name], set(), functions, sites)
            waiting += [n for op in functions[name].ops for n in functions_of(op)]
    return replace(main, functions=functions)


def _trimmed(
    graph: Graph, kept: set[str], functions: dict[str, Graph], sites: Mapping[str, int]
) -> Graph:
    """One graph, its loops cut down; their functions are replaced in `functions`."""
    needed = {*kept, *graph.outputs}
    ops: list[Op] = []
    for op in reversed(graph.ops):
        # A function that is run from several places gives each of them what it needs.
        if op.kind in LOOPS and all(sites[name] == 1 for name in functions_of(op)):
            op = _without_unread(op, needed, functions)
        if not op.outputs or not needed.isdisjoint(op.outputs) or _shares(graph, op):
            needed.update(op.inputs)
        ops.append(op)
    return replace(graph, ops=tuple(reversed(ops)))


def _shares(graph: Graph, op: Op) -> bool:
    """Whether an op writes to memory from elsewhere, so that it may matter."""
    return any(graph.values[name].storage for name in op.outputs)


def _without_unread(op: Op, needed: set[str], functions: dict[str, Graph]) -> Op:
    """A loop that carries what is read behind it and what that is made of."""
    read = frozenset(i for i, name in enumerate(op.outputs) if name in needed)
    if not read:  # the whole op goes
        return op
    names = functions_of(op)
    kept = _kept_positions([functions[name] for name in names], len(op.outputs), read)
    given = [i for i in range(len(op.inputs)) if i >= len(op.outputs) or i in kept]
    for index, name in enumerate(names):
        function = functions[name]
        # The first function is the body; a condition has its one result, which stays.
        outputs = function.outputs if index else _at(function.outputs, kept)
        arguments = _at(function.arguments, given)
        dropped = {*function.arguments} - {*arguments}
        body = _live(replace(function, outputs=outputs))
        values = {n: v for n, v in body.values.items() if n not in dropped}
        functions[name] = replace(body, values=values)
    return replace(
        op,
        inputs=_at(op.inputs, given),
        outputs=_at(op.outputs, kept),
    )


def _at(names: tuple[str, ...], positions: Iterable[int]) -> tuple[str, ...]:
    return tuple(names[position] for position in sorted(positions))


def _kept_positions(
    functions: list[Graph], num_carried: int, read: _Positions
) -> _Positions:
    """Carried values that are read behind the loop, and those that decide on them."""
    body, *conditions = functions
    for condition in conditions:
        used = _needed_in(condition, condition.outputs)
        read |= _carried_in(condition, num_carried, used)
    # What a kept value is made of in one trip has to be carried to it from the trip
    # before: until nothing is added.
    while True:
        used = _needed_in(body, _at(body.outputs, read))
        more = read | _carried_in(body, num_carried, used)
        if more == read:
            return read
        read = more


def _carried_in(function: Graph, num_carried: int, used: set[str]) -> _Positions:
    carried = function.arguments[:num_carried]
    return frozenset(i for i, name in enumerate(carried) if name in used)


def _needed_in(function: Graph, results: Iterable[str]) -> set[str]:
    needed = set(results)
    for op in reversed(function.ops):
        if not needed.isdisjoint(op.outputs):
            needed.update(op.inputs)
    return needed


def _live(function: Graph) -> Graph:
    """The function without ops that its results do not need."""
    needed = _needed_in(function, function.outputs)
    ops = tuple(op for op in function.ops if not needed.isdisjoint(op.outputs))
    gone = {n for op in function.ops if op not in ops for n in op.outputs}
    values = {name: v for name, v in function.values.items() if name not in gone}
    return replace(function, ops=ops, values=values)
