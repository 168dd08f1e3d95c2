"""Summary of a report as groups of labelled texts, for terminal and browser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from popple.report.query.memory import MemorySummary
from popple.report.query.summary import RunSummary, Summary
from popple.units import (
    render_bytes,
    render_count,
    render_joules,
    render_percent,
    render_seconds,
)

_SETTINGS = {
    "execution_strategy": "execution",
    "device_iterations": "device iterations",
    "gradient_accumulation": "gradient accumulation",
    "replicas": "replicas",
}
_ROLES = "Memory by role, on the fullest tile"
_MAX_CHIPS = 7
_RECOMPUTE = {
    True: "yes: activations are computed again for the backward pass",
    False: "no: activations are kept for the backward pass",
}


@dataclass(frozen=True)
class Group:
    """A heading and its rows of label and text."""

    name: str
    rows: tuple[tuple[str, str], ...]


def summary_groups(summary: Summary) -> tuple[Group, ...]:
    """Machine, memory, time, energy, program, settings; empty ones are left out."""
    groups = (
        Group("Machine", tuple(_machine_rows(summary))),
        Group("Memory", tuple(_memory_rows(summary))),
        Group(_ROLES, tuple(_role_rows(summary))),
        Group("Time", tuple(_time_rows(summary.run, num_replicas(summary)))),
        Group("Energy, estimated", tuple(_energy_rows(summary))),
        Group("Program", tuple(_program_rows(summary))),
        Group("Settings", tuple(_setting_rows(summary))),
    )
    return tuple(group for group in groups if group.rows)


def _machine_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    target = summary.target
    yield "target", ", ".join(dict.fromkeys((summary.target_name, target.architecture)))
    yield "IPUs", _num_chips(summary)
    yield "tiles of an IPU", render_count(target.tiles_per_chip)
    yield "clock", f"{target.clock_hz / 1e9:.3g} GHz"
    yield "memory of a tile", render_bytes(target.bytes_per_tile)


def _num_chips(summary: Summary) -> str:
    """IPUs of the replica that the report is about, and of all replicas."""
    count, replicas = summary.target.num_chips, num_replicas(summary)
    if replicas == 1:
        return render_count(count)
    return (
        f"{render_count(count)} of a replica, {render_count(count * replicas)} in all"
    )


def num_replicas(summary: Summary) -> int:
    """Replicas that ran; all figures are of one of them unless they say more."""
    return int(summary.info.get("replicas", 1))


def _memory_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    memory = summary.memory
    yield "fits", _fits(memory)
    # Gaps count: a tile is full when its last address is used.
    filled = memory.peak_tile_with_gaps_bytes / memory.capacity_bytes
    yield (
        "fullest tile",
        f"{render_bytes(memory.peak_tile_with_gaps_bytes)}, "
        f"{render_percent(filled)} of tile {memory.fullest_tile} "
        f"({render_bytes(memory.peak_tile_bytes)} without gaps)",
    )
    yield (
        "all tiles" if num_replicas(summary) == 1 else "all tiles of a replica",
        f"{render_bytes(memory.total_bytes)} "
        f"({render_bytes(memory.total_with_gaps_bytes)} with gaps)",
    )
    yield "always live", render_bytes(memory.always_live_bytes)
    yield "transient peak", render_bytes(summary.transient_peak_bytes)
    if "host_out_bytes" in summary.info:
        # What a program sends for inspection waits there, for all micro-batches.
        coming = render_bytes(int(summary.info["host_in_bytes"]))
        going = render_bytes(int(summary.info["host_out_bytes"]))
        yield "queues of the host", f"{coming} in, {going} out in a run"


def _role_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    """What the fullest tile of each IPU holds; of many IPUs, of the fullest."""
    whole: dict[int, int] = {}
    roles: dict[str, dict[int, int]] = {}
    for each in summary.memory_roles:
        whole[each.chip] = whole.get(each.chip, 0) + each.num_bytes
        roles.setdefault(each.role, {})[each.chip] = each.num_bytes
    if not roles:
        return
    chips = sorted(sorted(whole, key=lambda chip: -whole[chip])[:_MAX_CHIPS])
    if len(whole) > 1:
        yield "IPU", _columns(f"{chip}" for chip in chips)
    for role in dict.fromkeys(each.role for each in summary.memory_roles):
        sizes = (roles[role].get(chip, 0) for chip in chips)
        yield role, _columns(render_bytes(size) for size in sizes)
    yield "together", _columns(render_bytes(whole[chip]) for chip in chips)


def _columns(texts: Iterable[str]) -> str:
    return " ".join(f"{text:>10}" for text in texts).rstrip()


def _fits(memory: MemorySummary) -> str:
    if memory.fits:
        return f"yes, {render_bytes(memory.headroom_bytes)} to spare on every tile"
    over = render_bytes(max(0, -memory.headroom_bytes))
    return f"no, {memory.num_tiles_over} tiles over, the fullest by {over}"


def _time_rows(run: RunSummary | None, replicas: int) -> Iterator[tuple[str, str]]:
    if run is None:
        return
    name = f" ({run.name})" if run.name else ""
    cycles, seconds = render_count(run.cycles), render_seconds(run.seconds)
    yield f"one run{name}", f"{cycles} cycles, {seconds}"
    if run.samples_per_second is not None:
        rate = f"{render_count(run.samples_per_second)} samples/s"
        yield "throughput", f"{rate}{_of_all(replicas)}"
    if run.bound_by:
        yield "bound by", run.bound_by
    for share in run.shares:
        yield (
            share.name,
            f"{render_percent(share.share)}, {render_count(share.cycles)} cycles of an "
            f"average {run.shares_of}",
        )
    if run.tile_balance is not None:
        yield "tile balance", f"{render_percent(run.tile_balance)} busy while computing"


def _of_all(replicas: int) -> str:
    return f", all {render_count(replicas)} replicas" if replicas > 1 else ""


def _energy_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    energy = summary.run.energy if summary.run else None
    if energy is None:
        return
    num_chips = summary.target.num_chips
    replicas = num_replicas(summary)
    whole = render_joules(energy.joules * replicas)
    yield (
        "one run",
        f"{render_joules(energy.joules)}, all IPUs of a replica"
        + (f"; {whole}{_of_all(replicas)}" if replicas > 1 else ""),
    )
    yield (
        "mean power",
        f"{energy.mean_watts:,.0f} W, {energy.mean_watts / num_chips:,.0f} W of an IPU"
        + (" (a replica)" if replicas > 1 else ""),
    )
    causes = {
        "idle": energy.idle_joules,
        "compute": energy.compute_joules,
        "exchange": energy.exchange_joules,
    }
    for cause, joules in causes.items():
        yield cause, render_percent(joules / energy.joules)
    if energy.joules_per_sample is not None:
        yield "a sample", render_joules(energy.joules_per_sample)


def _program_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    counts = summary.graph_info
    yield "compute sets", render_count(counts.num_compute_sets)
    yield "vertices", render_count(counts.num_vertices)
    yield "edges", render_count(counts.num_edges)
    yield "variables", render_count(counts.num_variables)


def _setting_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    for key, label in _SETTINGS.items():
        if key in summary.info:
            yield label, str(summary.info[key])
    if samples := summary.info.get("samples_per_run"):
        yield "samples per run", f"{samples}{_of_all(num_replicas(summary))}"
    if summary.info.get("is_training"):
        yield "recomputation", _RECOMPUTE[bool(summary.info["recompute"])]
