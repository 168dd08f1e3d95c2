"""What happened when the program ran: runs, steps, cycles, blocks."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from popple import report as rp
from pva._programs import Program, ProgramIndex

__all__ = ["ExecutionReport", "ExecutionStep"]

# No genuine file with blocks has been seen: the order is that of the properties.
_COMMON, _OVERFLOW, _BLOCK_FLUSH, _STREAM_COPY = range(4)


class Cycles(NamedTuple):
    """Cycles since the start of the program, over the tiles of a chip."""

    max: int
    mean: int
    min: int


class CycleRange(NamedTuple):
    """When the tiles of a chip began and ended."""

    cyclesFrom: Cycles
    cyclesTo: Cycles


class IpuStep:
    """What one chip did in a step; all zero for a chip that took no part."""

    def __init__(self, record: rp.StepOnChip, step: ExecutionStep) -> None:
        self._record = record
        self._step = step
        self.cycles = record.cycles
        self.activeTiles = record.num_active_tiles
        self.activeTileBalance = record.active_tile_balance
        self.tileBalance = record.tile_balance
        self.threadBalance = record.thread_balance or 0.0

    @property
    def activeCycles(self) -> CycleRange:
        """When the tiles that took part did."""
        record = self._record
        return CycleRange(
            self._since_start(record.active_from_cycles),
            self._since_start(record.active_to_cycles),
        )

    @property
    def dataIn(self) -> int:
        """Bytes the chip's tiles received."""
        return self._step.received_bytes[self._record.chip]

    @property
    def dataOut(self) -> int:
        """Bytes the chip's tiles sent."""
        return self._step.sent_bytes[self._record.chip]

    def _since_start(self, spread: rp.Spread) -> Cycles:
        return Cycles(*(self._record.base_cycles + value for value in spread))


class ExecutionStep:
    """One executed program, or a sync."""

    def __init__(
        self, record: rp.Step, programs: ProgramIndex, target: rp.TargetInfo
    ) -> None:
        self._record = record
        self._programs = programs
        self._target = target

    @property
    def program(self) -> Program:
        """What was executed."""
        if self._record.program_id is None:
            return self._programs.waiting(self._record.sync_type or self._record.kind)
        return self._programs.programs[self._record.program_id]

    @cached_property
    def ipus(self) -> list[IpuStep]:
        """What every chip did."""
        held = {on.chip: on for on in self._record.chips}
        chips = range(self._target.num_chips)
        return [IpuStep(held.get(c) or rp.lockstep(c, 0, ()), self) for c in chips]

    @property
    def cyclesByTile(self) -> list[int]:
        """Cycles of every tile."""
        size = self._target.tiles_per_chip
        held = {on.chip: on.cycles_by_tile for on in self._record.chips}
        vectors = (held.get(c) or ((size, 0),) for c in range(self._target.num_chips))
        return [cycles for runs in vectors for cycles in rp.array_of(runs).tolist()]

    @cached_property
    def received_bytes(self) -> list[int]:
        """Bytes the tiles of each chip received."""
        return self._moved("received_bytes_by_tile")

    @cached_property
    def sent_bytes(self) -> list[int]:
        """Bytes the tiles of each chip sent."""
        return self._moved("sent_bytes_by_tile")

    def _moved(self, direction: str) -> list[int]:
        payload: Any = self.program._record.payload
        traffic = getattr(payload, "traffic", None)
        if traffic is None:
            return [0] * self._target.num_chips
        tiles = rp.array_of(getattr(traffic, direction))
        return tiles.reshape(self._target.num_chips, -1).sum(axis=1).tolist()


class Microseconds(NamedTuple):
    """Time of day in microseconds."""

    start: int
    end: int


class Run:
    """One call that ran the program."""

    def __init__(self, record: rp.RunInfo, steps: list[ExecutionStep]) -> None:
        self.name = record.name
        self.steps = steps
        start = record.start_epoch_us
        self.microseconds = Microseconds(start, start + (record.elapsed_us or 0))


class TotalCycles(NamedTuple):
    """Cycles of all runs together."""

    total: int


class Block:
    """A measurement one tile took."""

    def __init__(self, record: rp.Block, programs: ProgramIndex) -> None:
        self.tile = record.tile
        self.cyclesFrom = record.from_cycles
        self.cyclesTo = record.to_cycles
        number = record.block_id
        self.program = None if number is None else programs.programs.get(number)
        self.isCommon = record.type_id == _COMMON
        self.isOverflow = record.type_id == _OVERFLOW
        self.isBlockFlush = record.type_id == _BLOCK_FLUSH
        self.isStreamCopy = record.type_id == _STREAM_COPY


class ExecutionReport:
    """What happened, as `report.execution`; empty for a program that never ran."""

    def __init__(self, records: rp.Report, programs: ProgramIndex) -> None:
        self._records = records
        self._programs = programs

    @cached_property
    def steps(self) -> list[ExecutionStep]:
        """The steps of all runs."""
        target = self._records.target
        return [
            ExecutionStep(record, self._programs, target)
            for record in self._records.steps
        ]

    @cached_property
    def runs(self) -> list[Run]:
        """The runs."""
        records = self._records.runs
        ends = run_ends([run.num_steps for run in records], len(self.steps))
        starts = [0, *ends[:-1]]
        return [
            Run(record, self.steps[start:end])
            for record, start, end in zip(records, starts, ends, strict=True)
        ]

    @property
    def totalCycles(self) -> TotalCycles:
        """How long it took."""
        return TotalCycles(sum(each.cycles for each in self._records.cycle_totals))

    def blocks(self, tile: int) -> list[Block]:
        """What one tile measured."""
        records = self._records.blocks
        return [Block(each, self._programs) for each in records if each.tile == tile]


def run_ends(counts: list[int], num_steps: int) -> list[int]:
    """Where the steps of each run end.

    Genuine files do not count the sync at the end of a run; it belongs to the run.
    """
    if num_steps - sum(counts) == len(counts):
        counts = [count + 1 for count in counts]
    ends = list(accumulate(counts))
    return [*ends[:-1], num_steps] if ends else []
