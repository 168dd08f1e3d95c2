"""View data: a report as JSON-able data, the contract with the browser viewer.

Run vectors are lists `[[count, value], ...]` over all tiles. Change `FORMAT`
when a key changes its meaning.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from popple.report.codec import IntArray, runs_of
from popple.report.parts.extras import Operation, TimelineSlice
from popple.report.parts.variables import Variable
from popple.report.query.groups import summary_groups
from popple.report.query.liveness import Liveness, liveness
from popple.report.query.memory import bytes_by_category
from popple.report.query.operations import operations, share_of_run
from popple.report.query.plan_record import parse_plan
from popple.report.query.summary import Summary, summarize
from popple.report.read import Report

FORMAT = 2
# Bounds the size of the page; the longest slices are kept, which are seen first.
MAX_SLICES = 20_000

Json: TypeAlias = dict[str, Any]


def view_data(report: Report) -> Json:
    """Everything the viewer shows."""
    summary = summarize(report)
    slices, num_left_out = _longest_slices(report)
    return {
        "format": FORMAT,
        "title": summary.title,
        "generator": summary.generator,
        "modelled": summary.is_modelled,
        "summary": [
            {"group": group.name, "rows": [list(row) for row in group.rows]}
            for group in summary_groups(summary)
        ],
        "target": _target(summary),
        "memory": _memory(report),
        "liveness": _liveness(liveness(report)),
        "energy": _energy(summary),
        "operations": [_operation(report, each) for each in operations(report)],
        "chip_times": [each.cycles_by_class for each in report.chip_times],
        "timeline": [_slice(each) for each in slices],
        "notes": [*summary.notes, *_timeline_notes(num_left_out)],
    }


def _target(summary: Summary) -> Json:
    target = summary.target
    return {
        "name": summary.target_name,
        "num_chips": target.num_chips,
        "tiles_per_chip": target.tiles_per_chip,
        "num_tiles": target.num_tiles,
        "bytes_per_tile": target.bytes_per_tile,
        "clock_hz": target.clock_hz,
    }


def _energy(summary: Summary) -> Json | None:
    """Joules of one run by cause; none where nothing was estimated."""
    energy = summary.run.energy if summary.run else None
    if energy is None:
        return None
    return {
        "is_estimate": True,
        "idle_joules": energy.idle_joules,
        "compute_joules": energy.compute_joules,
        "exchange_joules": energy.exchange_joules,
        "mean_watts": energy.mean_watts,
        "joules_per_sample": energy.joules_per_sample,
    }


def _memory(report: Report) -> Json:
    memory = report.memory_by_tile
    return {
        "series": {
            "total": _runs(memory.total_bytes),
            "total_including_gaps": _runs(memory.total_with_gaps_bytes),
            "always_live": _runs(memory.always_live_bytes),
            "transient_peak": _runs(memory.transient_peak_bytes),
        },
        "categories": {
            name: _runs(vector) for name, vector in bytes_by_category(report).items()
        },
        "capacity_bytes": report.target.bytes_per_tile,
    }


def _runs(vector: IntArray) -> list[list[int]]:
    return [list(run) for run in runs_of(vector)]


def _liveness(found: Liveness) -> Json:
    return {
        "steps": list(found.step_names),
        "chips": [
            {
                "chip": chip.chip,
                "always_live_bytes": chip.always_live_bytes,
                "transient_bytes": chip.transient_bytes.tolist(),
            }
            for chip in found.chips
        ],
        "peaks": [
            {
                "chip": peak.chip,
                "step_index": peak.step_index,
                "bytes": peak.num_bytes,
                "variables": [_variable(each) for each in peak.variables],
            }
            for peak in found.peaks
        ],
        "always_live_variables": [
            {**_variable(each), "chip": each.chip}
            for each in found.always_live_variables
        ],
    }


def _variable(variable: Variable) -> Json:
    return {"name": variable.name, "bytes": variable.num_bytes}


def _operation(report: Report, operation: Operation) -> Json:
    return {
        "name": operation.name,
        "kind": operation.kind,
        "family": operation.family,
        "phase": operation.phase,
        "chip": operation.chip,
        "stage": operation.stage,
        "module": operation.module,
        "line": operation.source_line,
        "cycles": operation.cycles,
        "share": share_of_run(report, operation),
        "compute_cycles": operation.compute_cycles,
        "exchange_cycles": operation.exchange_cycles,
        "link_cycles": operation.link_cycles,
        "host_cycles": operation.host_cycles,
        "sync_cycles": operation.sync_cycles,
        "flops": operation.flops,
        "bound_by": operation.bound_by,
        "limited_by": operation.limited_by,
        "remark": operation.remark,
        "executions": operation.num_executions,
        "rule": operation.rule,
        "bytes": operation.memory_bytes,
        "temporary_bytes": operation.temporary_bytes,
        "plan": _plan(operation),
    }


def _plan(operation: Operation) -> Json:
    plan = parse_plan(operation.plan_json)
    return {
        "how": plan.how,
        "choice": [list(pair) for pair in plan.choice],
        "runners_up": [[each.text, each.estimated_cycles] for each in plan.runners_up],
    }


def _slice(each: TimelineSlice) -> Json:
    return {
        "chip": each.chip,
        "start": each.start_cycles,
        "end": each.end_cycles,
        "label": each.label,
        "phase": each.phase,
        "stage": each.stage,
        "micro_batch": each.micro_batch,
    }


def _longest_slices(report: Report) -> tuple[list[TimelineSlice], int]:
    """What the viewer can draw, in order of time, and how many are left out."""
    by_length = sorted(
        report.timeline, key=lambda each: each.start_cycles - each.end_cycles
    )
    kept = by_length[:MAX_SLICES]
    ordered = sorted(kept, key=lambda each: (each.start_cycles, each.chip))
    return ordered, len(by_length) - len(kept)


def _timeline_notes(num_left_out: int) -> list[str]:
    if not num_left_out:
        return []
    return [f"The timeline leaves out its {num_left_out:,} shortest slices."]
