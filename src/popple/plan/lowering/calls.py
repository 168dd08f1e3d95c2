"""Calls: where ops that share code begin, and what is copied for them there.

The frameworks' compilers make functions of what repeats. A function has a place of its
own for every weight it reads, so a call begins with copies of them (graphcore/popart
willow/src/popx/op/callx.cpp). A call is a run of ops that follow each other like the
ops they repeat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from popple.graph import DType, Graph, Op, Phase
from popple.plan.builder import vertices
from popple.plan.codelets.rates import multi_codelet
from popple.plan.codelets.shape import copy_cycles, shuffle_cycles
from popple.plan.lowering.plan_ops import PlannedOps
from popple.plan.opplan import TileMapping
from popple.program import TileVector, VertexGroup, add_all
from popple.target import Chip

_MEMCPY_CODE_BYTES = 200
_ORDERING_CODE_BYTES = 260


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


def copy_name(op: Op, position: int) -> str:
    """Name of the variable for the copy of an input of an op."""
    return f"{op.name}/copy of input {position}"


def find_calls(graph: Graph, planned: PlannedOps) -> dict[str, tuple[Copy, ...]]:
    """All copies of each call, by the op that the call begins with."""
    calls: dict[str, tuple[Copy, ...]] = {}
    for ops in _runs(graph, planned):
        copies = [
            copy
            for op in ops
            if op.name in planned.copies
            for copy in _copies_of(op, planned)
        ]
        if copies:
            calls[ops[0].name] = tuple(copies)
    return calls


def _runs(graph: Graph, planned: PlannedOps) -> Iterator[list[Op]]:
    """Ops that follow each other like ops before them, none of them twice."""
    run: dict[int, Op] = {}
    latest: dict[tuple[int, int], int] = {}
    expected, place = 0, (-1, -1, Phase.FORWARD)
    # Views run no code, so they neither begin nor break a call.
    with_steps = (op for op in graph.ops if planned.plans[op.name].steps)
    for number, op in enumerate(with_steps, start=1):
        # Plans are told apart by identity: ops that share code share a plan.
        plan, here = id(planned.plans[op.name]), (op.chip, op.stage, op.phase)
        # 0 is an op that repeats nothing. A run goes on while ops follow each other
        # just as those they repeat did.
        previous = latest.get((plan, op.chip), 0)
        # A function is on one chip, in one stage and phase, and an op in it twice would
        # make the run a repetition of itself.
        if previous != expected or here != place or plan in run:
            yield list(run.values())
            run = {}
        run[plan] = op
        latest[plan, op.chip], place = number, here
        expected = previous + 1 if previous else 0
    yield list(run.values())


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
