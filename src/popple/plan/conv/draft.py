"""Draft: steps and temporaries of a plan while it is being written.

Temporaries are begun at the step that fills them and ended at the one that reads them
last; a loop holds the peak of its body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from popple.plan.codelets.sizes import PARTIALS_CODE_BYTES
from popple.plan.conv.occupancy import Occupancy
from popple.plan.opplan import Compute, Loop, PlanStep, Temporary
from popple.program import (
    Codelet,
    Thread,
    TileVector,
    VertexGroup,
    add_all,
    maximum_of,
)

_STATE_BYTES = 16
_SOURCE = "graphcore/poplibs lib/poplin/ConvModel.cpp"


class Draft:
    """Grows step by step; `finish` gives the steps and the memory they need."""

    def __init__(self) -> None:
        self._steps: list[PlanStep] = []
        self._temporaries: dict[str, Temporary] = {}

    @property
    def position(self) -> int:
        """Index of the next step."""
        return len(self._steps)

    def add(self, step: PlanStep) -> None:
        """Append a step."""
        self._steps.append(step)

    def compute(
        self, name: str, group: VertexGroup, reads: tuple[int, ...] = ()
    ) -> None:
        """Append a compute phase of one kind of vertex, which reads some inputs."""
        self.add(Compute(name, (group,), reads))

    def multi(
        self,
        name: str,
        codelet: str,
        occupancy: Occupancy,
        cycles: int,
        reads: tuple[int, ...] = (),
    ) -> None:
        """Append a phase of one multi-worker vertex on every tile used."""
        kind = Codelet(
            codelet, Thread.MULTI, PARTIALS_CODE_BYTES, _STATE_BYTES, _SOURCE
        )
        cycles_by_tile = occupancy.vector(cycles)
        self.compute(name, VertexGroup(kind, occupancy.ones, cycles_by_tile), reads)

    def add_loop(self, count: int, body: Draft) -> None:
        """Append a loop around the steps of `body`, with the memory of its peak."""
        steps, temporaries = body.finish()
        for is_interleaved, name in ((False, "loop buffers"), (True, "partials")):
            chosen = [t for t in temporaries if t.is_interleaved is is_interleaved]
            if chosen:
                peak = _find_peak(chosen, len(steps))
                self._begin(name, peak, self.position, is_interleaved)
        self.add(Loop(count, steps))

    def begin(
        self, name: str, bytes_by_tile: TileVector, is_interleaved: bool = False
    ) -> None:
        """Memory that the latest step fills."""
        self._begin(name, bytes_by_tile, max(0, self.position - 1), is_interleaved)

    def begin_next(self, name: str, bytes_by_tile: TileVector) -> None:
        """Memory that the next step fills."""
        self._begin(name, bytes_by_tile, self.position, is_interleaved=False)

    def end(self, name: str) -> None:
        """The latest step is the last to read it; unknown names are not in memory."""
        if name in self._temporaries:
            last = max(0, self.position - 1)
            found = self._temporaries[name]
            self._temporaries[name] = replace(found, last=max(found.first, last))

    def mark_operand(self, name: str) -> None:
        """It shares no memory element with what is written while it is read."""
        if name in self._temporaries:
            found = self._temporaries[name]
            self._temporaries[name] = replace(found, is_operand=True)

    def finish(self) -> tuple[tuple[PlanStep, ...], tuple[Temporary, ...]]:
        """All steps, and the memory that is not empty."""
        used = (t for t in self._temporaries.values() if not t.bytes_by_tile.is_zero)
        return tuple(self._steps), tuple(used)

    def _begin(
        self, name: str, bytes_by_tile: TileVector, first: int, is_interleaved: bool
    ) -> None:
        temporary = Temporary(name, bytes_by_tile, first, first, is_interleaved)
        self._temporaries[name] = temporary


def _find_peak(temporaries: Sequence[Temporary], num_steps: int) -> TileVector:
    """Tile by tile the most that is live at one step."""
    num_tiles = len(temporaries[0].bytes_by_tile)
    live = (
        add_all(
            (t.bytes_by_tile for t in temporaries if t.first <= step <= t.last),
            num_tiles,
        )
        for step in range(num_steps)
    )
    return maximum_of(list(live))
