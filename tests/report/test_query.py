"""Aggregates of the hand-made report, derived from the table in conftest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from popple import report as rp
from popple.report import query
from popple.report.query import view


@pytest.fixture(scope="module")
def report(
    contents: rp.ReportContents, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[rp.Report]:
    path = rp.write_report(contents, tmp_path_factory.mktemp("report"))
    with rp.open_report(path) as opened:
        yield opened


def rewritten(contents: rp.ReportContents, tmp_path: Path, **change: Any) -> rp.Report:
    """The report of the contents with some parts replaced."""
    return rp.open_report(rp.write_report(replace(contents, **change), tmp_path))


def test_memory_summary(report: rp.Report) -> None:
    memory = rp.summarize(report).memory
    assert (memory.total_bytes, memory.total_with_gaps_bytes) == (3200, 3480)
    assert (memory.fullest_tile, memory.peak_tile_with_gaps_bytes) == (7, 640)
    assert (memory.fits, memory.headroom_bytes) == (True, 360)
    assert memory.always_live_bytes == 1600


def test_one_tile_over_does_not_fit(
    contents: rp.ReportContents, tmp_path: Path
) -> None:
    full = replace(
        contents.memory_by_tile, total_with_gaps_bytes=((7, 1000), (1, 1001))
    )
    with rewritten(contents, tmp_path, memory_by_tile=full) as report:
        memory = rp.summarize(report).memory
    assert not memory.fits
    assert (memory.num_tiles_over, memory.headroom_bytes) == (1, -1)


def test_overflowed_bytes_do_not_fit(
    contents: rp.ReportContents, tmp_path: Path
) -> None:
    spilled = replace(contents.memory_by_tile, overflowed_with_gaps_bytes=((8, 1),))
    with rewritten(contents, tmp_path, memory_by_tile=spilled) as report:
        assert rp.summarize(report).memory.num_tiles_over == 8


def test_run_summary(report: rp.Report) -> None:
    run = rp.summarize(report).run
    assert run is not None
    assert (run.name, run.cycles) == ("main", 160)
    # 160 cycles at 1 GHz for 32 samples.
    assert run.seconds == pytest.approx(160e-9)
    assert run.samples_per_second == pytest.approx(200e6)
    # Compute: 90 of 100 on chip 0 and 80 of 80 on chip 1.
    assert run.tile_balance == pytest.approx((90 + 80) / (100 + 80))


def test_classes_add_up_to_the_run(report: rp.Report) -> None:
    run = rp.summarize(report).run
    assert run is not None
    cycles = {share.name: share.cycles for share in run.shares}
    assert cycles == {
        "compute": (85 + 60) / 2,
        "exchange": 10,
        "links": 20,
        "host": 5,
        "sync": 20,
        "bubbles": (20 + 45) / 2,
    }
    assert sum(cycles.values()) == run.cycles
    assert (run.bound_by, run.shares_of) == ("compute", "IPU")


def test_a_genuine_file_has_shares_of_tiles(
    contents: rp.ReportContents, tmp_path: Path
) -> None:
    with rewritten(contents, tmp_path, chip_times=()) as report:
        run = rp.summarize(report).run
    assert run is not None
    cycles = {share.name: share.cycles for share in run.shares}
    assert cycles == {
        "compute": 680 / 8,
        "exchange": 80 / 8,
        "links": 160 / 8,
        "host": 30 / 8,
        "sync and idle": 330 / 8,
    }
    assert (run.bound_by, run.shares_of) == ("", "tile")


def test_energy_is_shared_out_to_samples_of_all_replicas(
    contents: rp.ReportContents, tmp_path: Path
) -> None:
    joules = {"idle_joules": 1.0, "compute_joules": 5.0, "exchange_joules": 2.0}
    info = {**contents.info, **joules, "replicas": 4}
    with rewritten(contents, tmp_path, info=info) as report:
        run = rp.summarize(report).run
        assert rp.view_data(report)["energy"]["is_estimate"]
    assert run is not None
    assert run.energy is not None
    assert run.energy.joules_per_sample == pytest.approx(4 * 8.0 / 32)
    assert run.energy.mean_watts == pytest.approx(8.0 / 160e-9)


def test_a_report_without_energy_has_none(report: rp.Report) -> None:
    run = rp.summarize(report).run
    assert run is not None
    assert run.energy is None
    assert rp.view_data(report)["energy"] is None


def test_the_longest_run_counts(contents: rp.ReportContents, tmp_path: Path) -> None:
    short = rp.total_steps((), 7, 8, run_id=1)
    totals = (short, *contents.cycle_totals)
    with rewritten(contents, tmp_path, cycle_totals=totals) as report:
        summary = rp.summarize(report)
    assert summary.num_runs == 2
    assert summary.run is not None
    assert summary.run.cycles == 160


def test_nothing_ran(contents: rp.ReportContents, tmp_path: Path) -> None:
    idle: dict[str, Any] = {"steps": (), "runs": (), "cycle_totals": ()}
    with rewritten(contents, tmp_path, **idle, operations=()) as report:
        assert rp.summarize(report).run is None
        assert rp.operations(report) == ()
        assert "Time" not in rp.render_summary(report)


def test_categories_add_up_to_the_total(report: rp.Report) -> None:
    parts = {name: part.tolist() for name, part in rp.bytes_by_category(report).items()}
    # 300 - 200 - 80 on chip 0, 500 - 350 - 80 on chip 1; empty ones are left out.
    assert parts == {
        "variable": [200] * 4 + [350] * 4,
        "vertexCode": [80] * 8,
        "overlapped": [20] * 4 + [70] * 4,
    }


def test_liveness_adds_up_changes(report: rp.Report) -> None:
    found = rp.liveness(report)
    transient = [chip.transient_bytes.tolist() for chip in found.chips]
    assert transient[0] == [0, 400, 400, 0, 0, 0, 0, 0]
    assert transient[1] == [0, 0, 700, 700, 800, 0, 0, 0]
    assert [chip.always_live_bytes for chip in found.chips] == [800, 800]
    # Both chips at step 2: 400 + 700.
    assert rp.summarize(report).transient_peak_bytes == 1100


def test_peaks_name_their_variables(report: rp.Report) -> None:
    first, second = rp.liveness(report).peaks
    assert (first.step_index, first.num_bytes) == (1, 400)
    assert [each.name for each in first.variables] == ["act0"]
    assert (second.step_index, second.num_bytes) == (4, 800)
    assert [each.name for each in second.variables] == ["act1", "scratch"]


def test_always_live_variables_largest_first(report: rp.Report) -> None:
    names = [each.name for each in rp.liveness(report).always_live_variables]
    assert names == ["weights1", "weights0"]


def test_steps_have_names_people_know(report: rp.Report) -> None:
    assert rp.liveness(report).step_names == (
        "start",
        "dense/forward",
        "gather",
        "GlobalExchange",
        "images, loss",
        "Repeat",
        "Call",
        "Sync",
    )


def test_operations_costliest_first(report: rp.Report) -> None:
    assert [each.name for each in rp.operations(report)] == [
        "dense/matmul",
        "dense/add",
    ]
    (top,) = rp.costliest(report, 1)
    assert query.share_of_run(report, top) == pytest.approx(120 / 160)


def test_operations_from_steps(contents: rp.ReportContents, tmp_path: Path) -> None:
    with rewritten(contents, tmp_path, operations=()) as report:
        rows = [(row.name, row.chip, row.cycles) for row in rp.operations(report)]
    assert rows[:2] == [("dense/forward", 0, 100), ("dense/forward", 1, 80)]
    assert ("gather", 1, 10) in rows


def test_generic_ops_are_noted(report: rp.Report) -> None:
    modelled, generic = rp.summarize(report).notes
    assert "modelled, not measured" in modelled
    assert generic == "Modelled by the generic rule: aten.bar (3), aten.foo (1)."


def test_view_is_json_with_the_agreed_keys(report: rp.Report) -> None:
    data = json.loads(json.dumps(rp.view_data(report)))
    assert list(data) == [
        "format",
        "title",
        "generator",
        "modelled",
        "summary",
        "target",
        "memory",
        "liveness",
        "energy",
        "operations",
        "chip_times",
        "timeline",
        "notes",
    ]
    assert (data["format"], data["title"], data["modelled"]) == (2, "by hand", True)
    assert data["generator"] == "popple 0.1"
    assert data["target"]["num_tiles"] == 8


def test_view_of_memory(report: rp.Report) -> None:
    memory = rp.view_data(report)["memory"]
    assert memory["capacity_bytes"] == 1000
    assert memory["series"] == {
        "total": [[4, 300], [4, 500]],
        "total_including_gaps": [[4, 320], [3, 520], [1, 640]],
        "always_live": [[8, 200]],
        "transient_peak": [[4, 100], [4, 300]],
    }
    assert memory["categories"]["overlapped"] == [[4, 20], [4, 70]]


def test_view_of_liveness(report: rp.Report) -> None:
    data = rp.view_data(report)["liveness"]
    assert data["chips"][0]["transient_bytes"] == [0, 400, 400, 0, 0, 0, 0, 0]
    variables = [{"name": "act1", "bytes": 700}, {"name": "scratch", "bytes": 100}]
    peak = {"chip": 1, "step_index": 4, "bytes": 800, "variables": variables}
    assert data["peaks"][1] == peak
    largest = {"name": "weights1", "bytes": 900, "chip": 1}
    assert data["always_live_variables"][0] == largest


def test_view_of_operations(report: rp.Report) -> None:
    assert rp.view_data(report)["operations"][0] == {
        "name": "dense/matmul",
        "kind": "matmul",
        "family": "matmul",
        "phase": "forward",
        "chip": 1,
        "stage": 0,
        "module": "dense",
        "line": "net.py:12",
        "cycles": 120,
        "share": 0.75,
        "compute_cycles": 100,
        "exchange_cycles": 15,
        "link_cycles": 0,
        "host_cycles": 0,
        "sync_cycles": 5,
        "flops": 16_000,
        "bound_by": "compute",
        "limited_by": "",
        "remark": "",
        "executions": 2,
        "rule": "matmul",
        "bytes": 900,
        "temporary_bytes": 0,
        "plan": {"how": "", "choice": [], "runners_up": []},
    }


def test_view_of_the_timeline(report: rp.Report) -> None:
    slices = rp.view_data(report)["timeline"]
    copy = {"chip": 1, "start": 110, "end": 130, "label": "copy", "phase": "forward"}
    assert slices[1] == {**copy, "stage": 1, "micro_batch": 0}


def test_a_long_timeline_keeps_its_longest_slices(
    contents: rp.ReportContents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MAX_SLICES", 2)
    slices = [rp.TimelineSlice(0, i, i + size, "x") for i, size in enumerate((5, 1, 9))]
    with rewritten(contents, tmp_path, timeline=slices) as report:
        data = rp.view_data(report)
    assert [each["end"] for each in data["timeline"]] == [5, 11]
    assert "leaves out its 1 shortest" in data["notes"][-1]
