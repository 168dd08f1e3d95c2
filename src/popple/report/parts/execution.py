"""Execution records of a report: steps on chips, runs, totals of tile cycles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import NamedTuple

from popple.quick import quick
from popple.report.codec import Run, Runs, length_of, max_of, merge_runs, sum_of


class Spread(NamedTuple):
    """Largest, mean and smallest value over tiles."""

    max: int
    mean: int
    min: int


NO_SPREAD = Spread(0, 0, 0)


@quick
@dataclass(frozen=True, slots=True)
class StepOnChip:
    """When the tiles of one chip ran a step.

    All spreads are cycles after `base_cycles`: when active tiles began, when
    active tiles ended, when all tiles ended. A balance is mean over maximum.
    """

    chip: int
    base_cycles: int
    active_from_cycles: Spread
    active_to_cycles: Spread
    all_to_cycles: Spread
    cycles: int
    num_active_tiles: int
    active_tile_balance: float
    tile_balance: float
    thread_balance: float | None = None
    cycles_by_tile: Runs | None = None


@quick
@dataclass(frozen=True, slots=True)
class Step:
    """One executed program, or a sync that no program asked for."""

    kind: str
    program_id: int | None = None
    sync_type: str | None = None
    chips: tuple[StepOnChip, ...] = ()


def lockstep(chip: int, base_cycles: int, cycles_by_tile: Runs) -> StepOnChip:
    """A step that all tiles of the chip begin at the same cycle."""
    runs = tuple(cycles_by_tile)
    return StepOnChip(chip, base_cycles, NO_SPREAD, *_ends(runs), cycles_by_tile=runs)


# Loops execute a few steps many times, with the same vectors. The limit bounds memory
# in programs where every step differs.
@lru_cache(maxsize=4096)
def _ends(runs: tuple[Run, ...]) -> tuple[Spread, Spread, int, int, float, float]:
    active = tuple(run for run in merge_runs(runs) if run[1])
    # Idle tiles count for the balance of all tiles, not for that of the active ones.
    longest = max_of(runs)
    return (
        _spread(active),
        _spread(runs),
        longest,
        length_of(active),
        sum_of(active) / (longest * length_of(active)) if active else 0.0,
        sum_of(runs) / (longest * length_of(runs)) if active else 0.0,
    )


def _spread(runs: Runs) -> Spread:
    if not length_of(runs):
        return NO_SPREAD
    smallest = min(value for count, value in runs if count)
    # The format stores whole cycles.
    return Spread(max_of(runs), sum_of(runs) // length_of(runs), smallest)


@dataclass(frozen=True)
class RunInfo:
    """One call that ran the program from its start to its end."""

    id: int
    name: str
    start_epoch_us: int
    num_programs: int
    num_steps: int
    elapsed_us: int | None = None
    estimated_hz_by_chip: tuple[int, ...] | None = None
    start_cycles_by_chip: tuple[int, ...] | None = None
    end_cycles_by_chip: tuple[int, ...] | None = None


@dataclass(frozen=True)
class TileCycles:
    """Cycles summed over tiles, by what the tiles were doing."""

    active_compute: int = 0
    compute: int = 0
    internal_exchange: int = 0
    inter_chip_exchange: int = 0
    stream_copy: int = 0
    stream_copy_begin: int = 0
    stream_copy_end: int = 0
    sync: int = 0


@dataclass(frozen=True)
class CycleTotals:
    """Length of a run and what its tiles spent it on.

    All of `tile_cycles` but `active_compute` add up to cycles times tiles.
    """

    run_id: int | None
    cycles: int
    tile_cycles: TileCycles
    overhead_cycles: TileCycles = field(default_factory=TileCycles)


_ACCOUNTS = {
    "OnTileExecute": "compute",
    "DoExchange": "internal_exchange",
    "GlobalExchange": "inter_chip_exchange",
    "StreamCopy": "stream_copy",
    "StreamCopyBegin": "stream_copy_begin",
    "StreamCopyEnd": "stream_copy_end",
}


def total_steps(
    steps: Iterable[Step], cycles: int, num_tiles: int, run_id: int | None = 0
) -> CycleTotals:
    """Totals of a run from its steps; tiles that do nothing else are in sync."""
    sums = {account.name: 0 for account in fields(TileCycles)}
    for step in steps:
        # Kinds without an account are syncs, which are what is left in the end.
        account = _ACCOUNTS.get(step.kind)
        if account is not None:
            sums[account] += sum(sum_of(on.cycles_by_tile or ()) for on in step.chips)
    # `active_compute` is 0 here, so no cycle is subtracted twice.
    sums["sync"] = max(0, cycles * num_tiles - sum(sums.values()))
    return CycleTotals(run_id, cycles, TileCycles(**sums))


@dataclass(frozen=True)
class Marker:
    """A point in time and the step every tile is in, to begin reading there."""

    id: int
    from_cycles: int
    length_cycles: int
    step_id_by_tile: Runs
    cycles_by_tile: Runs


@dataclass(frozen=True)
class Block:
    """A measurement taken by one tile; type 0 is an ordinary one."""

    tile: int
    from_cycles: int
    to_cycles: int
    block_id: int | None
    type_id: int
