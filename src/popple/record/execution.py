"""Execution trace of a report: steps over time, and totals of tile cycles by kind."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from popple.program import (
    Exchange,
    Execute,
    GlobalExchange,
    StreamCopy,
    chip_totals,
)
from popple.record.programs import STREAM_PARTS, ProgramTree
from popple.report import CycleTotals, StepOnChip, TileCycles, lockstep
from popple.report import Step as ReportStep
from popple.sim import ExecutedStep, Simulation, stream_cycles

MAX_STEPS = 50_000
"""Steps written out one by one; rounds of loops beyond that are taken together."""

_TILE_WORK = (
    "compute",
    "internal_exchange",
    "inter_chip_exchange",
    "stream_copy",
    "stream_copy_begin",
    "stream_copy_end",
)
_ACCOUNTS: dict[type, str] = {
    Execute: "compute",
    Exchange: "internal_exchange",
    GlobalExchange: "inter_chip_exchange",
}


def record_steps(simulation: Simulation, tree: ProgramTree) -> list[ReportStep]:
    """The steps of one run in order of time."""
    rows = simulation.executed_steps(MAX_STEPS)
    steps: list[ReportStep] = []
    # The simulation has one row for each chip, the format one step with all its chips.
    # Rows of one execution are neighbours.
    for (step_id, _), together in groupby(rows, _step_and_start):
        steps += _report_steps(simulation, tree, step_id, list(together))
    return steps


def _step_and_start(row: ExecutedStep) -> tuple[int, int]:
    return row.step_id, row.start_cycles


def _report_steps(
    simulation: Simulation, tree: ProgramTree, step_id: int, rows: list[ExecutedStep]
) -> Iterator[ReportStep]:
    """One executed step as the format has it: with its sync, in its parts."""
    step = simulation.steps[step_id].step
    if isinstance(step, StreamCopy):
        yield from _stream_steps(simulation, tree, step_id, step, rows)
        return
    sync = _sync_cycles(simulation, step_id)
    # The format knows a sync as a step without a program: it belongs to no node of the
    # tree, though a leaf here includes its own.
    if sync:
        kind = "External" if isinstance(step, GlobalExchange) else "Internal"
        yield ReportStep("Sync", None, kind, _waiting(simulation, rows, sync))
    chips = tuple(
        lockstep(row.chip, row.start_cycles + sync, row.cycles_by_tile.runs)
        for row in rows
    )
    yield ReportStep(tree.programs[step_id].type_name, step_id, None, chips)


def _sync_cycles(simulation: Simulation, step_id: int) -> int:
    leaf = simulation.timing.leaf_times[step_id]
    return leaf.cost.sync_cycles if leaf is not None else 0


def _waiting(
    simulation: Simulation, rows: list[ExecutedStep], cycles: int
) -> tuple[StepOnChip, ...]:
    # A barrier holds all tiles of a chip, also those that send and receive nothing.
    everyone = ((simulation.program.tiles_per_chip, cycles),)
    return tuple(lockstep(row.chip, row.start_cycles, everyone) for row in rows)


def _stream_steps(
    simulation: Simulation,
    tree: ProgramTree,
    step_id: int,
    step: StreamCopy,
    rows: list[ExecutedStep],
) -> Iterator[ReportStep]:
    """Begin, mid and end follow one another on every chip that takes part."""
    program = simulation.program
    totals = chip_totals(step.bytes_by_tile, program.num_chips, program.tiles_per_chip)
    # Chips with fewer bytes end their parts earlier, so each has an offset of its own.
    offsets = {row.chip: row.start_cycles for row in rows}
    for part, kind in enumerate(STREAM_PARTS):
        chips: list[StepOnChip] = []
        for row in rows:
            cycles = stream_cycles(step, totals[row.chip], simulation.target)[part]
            tiles = row.cycles_by_tile.presence().scaled(cycles)
            chips.append(lockstep(row.chip, offsets[row.chip], tiles.runs))
            offsets[row.chip] += cycles
        # In the format the middle part has one name as a program and another as a step.
        name = "StreamCopy" if kind == "StreamCopyMid" else kind
        yield ReportStep(name, tree.stream_parts[step_id][part], None, tuple(chips))


def record_totals(simulation: Simulation) -> CycleTotals:
    """Cycles of the run, and of all tiles by what they were doing.

    Exact also where the steps of loops are not written out.
    """
    sums: dict[str, int] = dict.fromkeys(_TILE_WORK, 0)
    timing = simulation.timing
    for row, leaf, count in zip(
        timing.steps, timing.leaf_times, timing.executions, strict=True
    ):
        if leaf is None or not count:
            continue
        if isinstance(row.step, StreamCopy):
            for name, cycles in _stream_tile_cycles(simulation, row.step):
                sums[name] += cycles * count
        elif account := _ACCOUNTS.get(type(row.step)):
            sums[account] += leaf.cycles_by_tile.total * count
    cycles = simulation.cost.cycles
    # The format has no account for idle tiles: waiting for others is sync, as the
    # vendor's tools count it.
    idle = cycles * simulation.program.num_tiles - sum(sums.values())
    return CycleTotals(
        0,
        cycles,
        # Active cycles are those in which vertices run; nothing else is modelled as
        # compute.
        TileCycles(active_compute=sums["compute"], sync=max(idle, 0), **sums),
    )


def _stream_tile_cycles(
    simulation: Simulation, step: StreamCopy
) -> Iterator[tuple[str, int]]:
    """Tile cycles of the parts of a stream copy."""
    program = simulation.program
    size = program.tiles_per_chip
    totals = chip_totals(step.bytes_by_tile, program.num_chips, size)
    for chip, num_bytes in enumerate(totals):
        tiles = step.bytes_by_tile.part(chip * size, (chip + 1) * size).num_nonzero
        begin, mid, end = stream_cycles(step, num_bytes, simulation.target)
        yield "stream_copy_begin", begin * tiles
        yield "stream_copy", mid * tiles
        yield "stream_copy_end", end * tiles
