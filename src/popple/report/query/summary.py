"""Summary of a report: machine, memory, time by phase, costliest operations, notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from popple.report.parts.execution import CycleTotals
from popple.report.parts.extras import (
    InfoValue,
    Operation,
    RoleBytes,
    add_times,
    bound_by,
)
from popple.report.parts.target import GraphInfo, TargetInfo
from popple.report.query.energy import EnergySummary, summarize_energy
from popple.report.query.liveness import transient_peak_bytes
from popple.report.query.memory import MemorySummary, summarize_memory
from popple.report.query.operations import costliest
from popple.report.read import Report
from popple.report.tables.rows import has_table

_NUM_COSTLIEST = 5

_PHASES = {
    "compute": ("compute",),
    "exchange": ("internal_exchange",),
    "links": ("inter_chip_exchange",),
    "host": ("stream_copy", "stream_copy_begin", "stream_copy_end"),
    "sync and idle": ("sync",),
}


# Weighted by length, so that short steps with few tiles do not dominate.
_BALANCE = """
    SELECT SUM(cycles * tile_balance), SUM(cycles)
    FROM steps JOIN steps_by_ipu ON step_id = steps.id
    WHERE type = 'OnTileExecute'"""


@dataclass(frozen=True)
class TimeShare:
    """Cycles of a class on an average IPU or tile, and their share of the run."""

    name: str
    cycles: float
    share: float


@dataclass(frozen=True)
class RunSummary:
    """The longest run: its length, and its speed where samples are known.

    `shares` add up to the run, on an average IPU or, in genuine files, an average tile:
    `shares_of` says of which. What the run is `bound_by` is known of IPUs only.
    """

    name: str
    cycles: int
    seconds: float
    samples_per_second: float | None
    shares: tuple[TimeShare, ...]
    shares_of: str
    bound_by: str
    tile_balance: float | None
    energy: EnergySummary | None


@dataclass(frozen=True)
class Summary:
    """The figures a reader asks for first; `run` is None if nothing ran."""

    title: str
    generator: str
    is_modelled: bool
    target_name: str
    target: TargetInfo
    graph_info: GraphInfo
    memory: MemorySummary
    transient_peak_bytes: int
    memory_roles: tuple[RoleBytes, ...]
    num_runs: int
    run: RunSummary | None
    costliest: tuple[Operation, ...]
    info: dict[str, InfoValue]
    notes: tuple[str, ...]


def summarize(report: Report) -> Summary:
    """Compute every figure of the summary once."""
    info = report.info
    return Summary(
        title=str(info.get("title", report.path.resolve().parent.name)),
        generator=_generator(report),
        is_modelled=is_modelled(report),
        target_name=str(info.get("target", report.target.architecture)),
        target=report.target,
        graph_info=report.graph_info,
        memory=summarize_memory(report),
        transient_peak_bytes=transient_peak_bytes(report),
        memory_roles=tuple(report.memory_roles),
        num_runs=len(report.cycle_totals),
        run=_summarize_run(report),
        costliest=costliest(report, _NUM_COSTLIEST),
        info=info,
        notes=notes(report),
    )


def is_modelled(report: Report) -> bool:
    """Whether the figures come from a model and not from a machine."""
    # Genuine files say it by the kind of their target: a model of the IPU, or a CPU.
    return bool(report.info.get("modelled", report.target.kind != "IPU"))


def notes(report: Report) -> tuple[str, ...]:
    """What a reader should know before trusting the figures."""
    found: list[str] = []
    if is_modelled(report):
        found.append("All cycles and bytes are modelled, not measured.")
    if left_out := report.info.get("not_modelled"):
        found.append(f"Not modelled: {left_out}")
    if report.generic_ops:
        counts = sorted(report.generic_ops.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{name} ({count})" for name, count in counts)
        found.append(f"Modelled by the generic rule: {listed}.")
    return tuple(found)


def _generator(report: Report) -> str:
    name = report.info.get("generator")
    if name is None:
        return f"Poplar {report.producer_version.text}"
    return f"{name} {report.info.get('popple_version', '')}".strip()


def _summarize_run(report: Report) -> RunSummary | None:
    if not report.cycle_totals:
        return None
    # Runs of different length may stand in one file; the longest is the program at
    # work.
    totals = max(report.cycle_totals, key=lambda each: each.cycles)
    names = {run.id: run.name for run in report.runs}
    # From cycles and clock: a file need not have an elapsed time.
    seconds = totals.cycles / report.target.clock_hz
    return RunSummary(
        name=names.get(totals.run_id or 0, ""),
        cycles=totals.cycles,
        seconds=seconds,
        samples_per_second=_samples_per_second(report, seconds),
        shares=_shares(report, totals),
        shares_of="IPU" if report.chip_times else "tile",
        bound_by=bound_by(add_times(report.chip_times)),
        tile_balance=report.load("steps", _tile_balance),
        energy=summarize_energy(report.info, seconds),
    )


def _samples_per_second(report: Report, seconds: float) -> float | None:
    samples = report.info.get("samples_per_run")
    if samples is None or not seconds:
        return None
    return float(samples) / seconds


def _shares(report: Report, totals: CycleTotals) -> tuple[TimeShare, ...]:
    if times := add_times(report.chip_times):
        return _normed(times, len(report.chip_times))
    tile_cycles = totals.tile_cycles
    cycles = {
        name: sum(getattr(tile_cycles, account) for account in accounts)
        for name, accounts in _PHASES.items()
    }
    return _normed(cycles, report.target.num_tiles)


def _normed(cycles: Mapping[str, int], count: int) -> tuple[TimeShare, ...]:
    # Shares of what is accounted for, so that they add up to 1.
    everything = sum(cycles.values()) or 1
    return tuple(
        TimeShare(name, each / count, each / everything)
        for name, each in cycles.items()
    )


def _tile_balance(report: Report) -> float | None:
    """Mean over maximum of compute cycles, weighted by the length of steps."""
    if not has_table(report.connection, "steps"):
        return None
    busy, longest = report.connection.execute(_BALANCE).fetchone()
    return busy / longest if longest else None
