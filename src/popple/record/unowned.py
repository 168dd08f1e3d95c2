"""Steps of a program that come from no single op, sorted into rows by what they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from popple.program import Control, Leaf
from popple.sim import Cost, Simulation, phase_without_op


@dataclass(frozen=True)
class Unowned:
    """A row of such steps: its name, the kind and phase of its ops, what they do.

    Names hold a space, which names of ops never do.
    """

    name: str
    kind: str
    phase: str
    how: str


_STREAMS = Unowned(
    "host streams",
    "stream",
    "host",
    "Inputs from the host and results to it.",
)
_JOINS = Unowned(
    "exchanges with I/O tiles",
    "exchange",
    "exchange",
    "What lies between the tiles that compute and those for traffic with the host.",
)
_COPIES = Unowned(
    "copies between IPUs",
    "chip_copy",
    "links",
    "What the stages of a pipeline send each other, in one exchange after each cycle.",
)
_COLLECTIVES = Unowned(
    "merged collectives",
    "collective",
    "update",
    "Collectives of several tensors that are made at the same time.",
)
_SUMS = Unowned(
    "sums of merged collectives",
    "collective",
    "compute",
    "What merged collectives add up on the tiles.",
)
_SYNCS = Unowned("lone syncs", "sync", "sync", "Barriers that belong to no op.")


_ROWS = {
    row.phase: row for row in (_STREAMS, _JOINS, _COPIES, _COLLECTIVES, _SUMS, _SYNCS)
}


def row_of(leaf: Leaf) -> Unowned:
    """The row of a leaf that names no op: there is one for each phase."""
    return _ROWS[phase_without_op(leaf)]


def costs_without_op(simulation: Simulation) -> Mapping[Unowned, Cost]:
    """The cost of each row that takes time."""
    found: dict[Unowned, Cost] = {}
    timing = simulation.timing
    for row, leaf, count in zip(
        timing.steps, timing.leaf_times, timing.executions, strict=True
    ):
        if leaf is None or isinstance(row.step, Control) or row.step.op:
            continue
        if count and leaf.cost.cycles:
            key = row_of(row.step)
            found[key] = found.get(key, Cost()) + leaf.cost * count
    return found
