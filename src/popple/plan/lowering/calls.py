"""Calls: ops that share code run as one function, and what is copied around them.

The frameworks' compilers make functions of what repeats. A function has a place of its
own for all that it reads and returns, so a call begins with copies of its arguments and
ends with copies of its results (graphcore/popart willow/src/popx/op/callx.cpp). A call
is a run of ops that follow each other like the ops they repeat; those are one, too.
What a function writes in place, such as a sum of gradients, is taken to be passed by
reference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from popple.graph import DType, Graph, Op, Phase, Role, functions_of, get_op
from popple.plan.builder import vertices
from popple.plan.codelets.rates import multi_codelet
from popple.plan.codelets.shape import copy_cycles, shuffle_cycles
from popple.plan.lowering.plan_ops import PlannedOps
from popple.plan.opplan import TileMapping
from popple.program import TileVector, VertexGroup, add_all
from popple.target import Chip

_MEMCPY_CODE_BYTES = 200
_ORDERING_CODE_BYTES = 260
_NEVER_INSIDE = frozenset({"copy", "collective"})
"""Families of ops that lead to or from elsewhere: they stand between calls."""
_WORTH_A_CALL = frozenset({"matmul", "conv", "norm", "recurrent"})
"""Families of the ops that a function is made for: Op::getSubgraphValue of PopART."""
_COPIED_ROLES = frozenset({Role.ACTIVATION, Role.INPUT, Role.ARGUMENT})


@dataclass(frozen=True)
class Copy:
    """An input of an op, from where it lies to where the function has it."""

    op: Op
    position: int
    source: TileMapping
    place: TileMapping

    @property
    def name(self) -> str:
        """Name of the variable that holds the copy."""
        return copy_name(self.op, self.position)

    @property
    def is_local(self) -> bool:
        """Whether every element stays on its tile."""
        return self.source == self.place


@dataclass(frozen=True)
class Call:
    """Ops that run as one function.

    `weights` are copied before it begins, and so are the values `entering`, to where
    the ops read them; the values `leaving` are copied when it is over, to where others
    read them.
    """

    ops: tuple[Op, ...]
    weights: tuple[Copy, ...]
    entering: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()

    def inside(self, value: str) -> str:
        """Name of the variable that holds a value while the function runs."""
        return f"{self.ops[0].name}/own {value}"


def copy_name(op: Op, position: int) -> str:
    """Name of the variable for the copy of an input of an op."""
    return f"{op.name}/copy of input {position}"


def find_calls(graph: Graph, planned: PlannedOps) -> tuple[Call, ...]:
    """All calls that copy anything, in the order of the graph."""
    if not planned.is_outlined:
        return ()
    boundaries = _Boundaries(graph, planned)
    calls: list[Call] = []
    for ops, is_function in _find_runs(graph, planned):
        weights = tuple(
            copy
            for op in ops
            if op.name in planned.copies
            for copy in _copies_of(op, planned)
        )
        entering = leaving = ()
        if is_function and _is_worth_it(ops):
            entering, leaving = boundaries.entering(ops), boundaries.leaving(ops)
        if weights or entering or leaving:
            calls.append(Call(tuple(ops), weights, entering, leaving))
    return tuple(calls)


def _is_worth_it(ops: Sequence[Op]) -> bool:
    if any(op.notes.side_by_side for op in ops):
        return False
    return any(get_op(op.kind).family in _WORTH_A_CALL for op in ops)


class _Boundaries:
    """What ops read of others, and others of them."""

    def __init__(self, graph: Graph, planned: PlannedOps) -> None:
        self._graph = graph
        self._mappings = planned.mappings
        self._readers: defaultdict[str, set[str]] = defaultdict(set)
        self._makers: dict[str, str] = {}
        for op in graph.ops:
            # A view reads nothing: who reads the view reads what it is of.
            if planned.plans[op.name].steps or _runs(op):
                for root in self._roots(op.inputs):
                    self._readers[root].add(op.name)
            for root in self._roots(op.outputs):
                self._makers.setdefault(root, op.name)
        self._returned = self._roots(graph.outputs)

    def _roots(self, names: Iterable[str]) -> set[str]:
        return set(map(self._graph.root, names))

    def entering(self, ops: Sequence[Op]) -> tuple[str, ...]:
        """Values of others that they read and leave as they are."""
        written = {root for op in ops for root in self._roots(op.outputs)}
        read = (self._graph.root(name) for op in ops for name in op.inputs)
        return tuple(
            root
            for root in dict.fromkeys(read)
            if root not in written
            and root in self._mappings
            and self._graph.values[root].role in _COPIED_ROLES
        )

    def leaving(self, ops: Sequence[Op]) -> tuple[str, ...]:
        """Values that they make and others read."""
        names = {op.name for op in ops}
        made = (self._graph.root(name) for op in ops for name in op.outputs)
        return tuple(
            root
            for root in dict.fromkeys(made)
            if self._makers[root] in names
            and self._graph.values[root].role is Role.ACTIVATION
            and (self._readers[root] - names or root in self._returned)
        )


def _find_runs(graph: Graph, planned: PlannedOps) -> Iterator[tuple[list[Op], bool]]:
    """Each op once, in runs, and whether a run is a function's; others are alone."""
    ordered = [op for op in graph.ops if planned.plans[op.name].steps or _runs(op)]
    runs = list(_repeated_runs(ordered, planned))
    # What is repeated is a call of the same function, unless another call has part of
    # it already.
    runs += [(begin - back, end - back, back) for begin, end, back in runs]
    ends: dict[int, int] = {}
    taken: set[int] = set()
    for begin, end, _ in runs:
        is_free = taken.isdisjoint(range(begin, end))
        if is_free and len(set(map(_place, ordered[begin:end]))) == 1:
            taken.update(range(begin, end))
            ends[begin] = end
    for number, op in enumerate(ordered):
        if number in ends:
            yield ordered[number : ends[number]], True
        elif number not in taken and not _runs(op):
            yield [op], False


def _repeated_runs(
    ordered: Sequence[Op], planned: PlannedOps
) -> Iterator[tuple[int, int, int]]:
    """Runs of ops that repeat others in their order: begin, end, how far back those."""
    latest: dict[tuple[int, int], int] = {}
    begin, back, seen = 0, 0, set[int]()
    for number, op in enumerate(ordered):
        # Plans are told apart by identity: ops that share code share a plan.
        plan = id(planned.plans[op.name])
        found = latest.get((plan, op.chip)) if _can_be_inside(op) else None
        latest[plan, op.chip] = number
        distance = 0 if found is None else number - found
        # A function is on one chip, in one stage and phase, and an op in it twice would
        # make the run a repetition of itself.
        is_next = distance == back and plan not in seen
        if seen and not (is_next and _place(op) == _place(ordered[begin])):
            yield begin, number, back
            seen = set[int]()
        if distance and not seen:
            begin, back = number, distance
        if distance:
            seen.add(plan)
    if seen:
        yield begin, len(ordered), back


def _runs(op: Op) -> bool:
    return bool(functions_of(op))


def _place(op: Op) -> tuple[int, int, Phase]:
    return op.chip, op.stage, op.phase


def _can_be_inside(op: Op) -> bool:
    # Updates write what they read: a function of them would have to copy that back.
    is_elsewhere = get_op(op.kind).family in _NEVER_INSIDE or _runs(op)
    return not is_elsewhere and op.phase is not Phase.UPDATE


def _copies_of(op: Op, planned: PlannedOps) -> tuple[Copy, ...]:
    return tuple(
        Copy(op, position, planned.mappings[op.inputs[position]], place)
        for position, place in planned.copies[op.name].items()
    )


def local_copies(mappings: Sequence[TileMapping], chip: Chip) -> VertexGroup:
    """The vertices that copy what stays on its tile, one on each."""
    moved = _added(mappings, chip)
    rate = chip.memcpy_bytes_per_cycle
    # Bytes are copied as words whatever the type of the elements is.
    codelet = multi_codelet("poplar::Memcpy", DType.F32, _MEMCPY_CODE_BYTES)
    return vertices(codelet, moved, lambda size: copy_cycles(size, rate))


def ordering(mappings: Sequence[TileMapping], chip: Chip) -> VertexGroup:
    """The vertices that put in order what an exchange has brought, one on each tile."""
    arrived = _added(mappings, chip)
    codelet = multi_codelet("poplar::Rearrange", DType.F32, _ORDERING_CODE_BYTES, 24)
    size = DType.F32.num_bytes
    return vertices(codelet, arrived, lambda num_bytes: shuffle_cycles(num_bytes, size))


def moved_copies(
    sources: Sequence[TileMapping], places: Sequence[TileMapping], chip: Chip
) -> tuple[TileVector, TileVector]:
    """Bytes that tiles send and receive for copies that go to other tiles."""
    return _added(sources, chip), _added(places, chip)


def _added(mappings: Sequence[TileMapping], chip: Chip) -> TileVector:
    vectors = [mapping.bytes_by_tile for mapping in mappings]
    return add_all(vectors, len(vectors[0]) if vectors else chip.num_tiles)
