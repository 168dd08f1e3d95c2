"""A file written by the vendor's software is read in full.

The figures are those the vendor's own tools show for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from popple import report as rp


@pytest.fixture(scope="module")
def genuine(genuine_path: Path) -> Iterator[rp.Report]:
    with rp.open_report(genuine_path) as report:
        yield report


def test_counts(genuine: rp.Report) -> None:
    assert genuine.graph_info == rp.GraphInfo(4, 7363, 57135, 4418)
    assert len(genuine.compute_sets) == 4
    assert len(genuine.steps) == 17
    assert len(genuine.lowered_variables) == 57135
    assert sum(each.num_vertices for each in genuine.compute_sets) == 4418
    assert sum(each.num_edges or 0 for each in genuine.compute_sets) == 7363


def test_target(genuine: rp.Report) -> None:
    target = genuine.target
    assert (target.num_chips, target.num_tiles) == (1, 1472)
    assert target.total_bytes == 940_572_672
    assert (target.clock_hz, target.architecture) == (1_850_000_000, "ipu2")
    # Memory regions begin at 0 and where interleaved memory begins.
    start = target.details.interleaved_memory_start
    assert target.details.memory_region_offsets == (0, start)


def test_memory(genuine: rp.Report) -> None:
    memory = rp.summarize(genuine).memory
    assert memory.total_with_gaps_bytes == 26_345_048
    assert memory.total_bytes == 3_622_368
    assert memory.fits
    parts = rp.bytes_by_category(genuine)
    assert sum(int(part.sum()) for part in parts.values()) == memory.total_bytes


def test_cycles(genuine: rp.Report) -> None:
    summary = rp.summarize(genuine)
    assert summary.run is not None
    assert summary.run.cycles == 20_869_010
    last = genuine.steps[-1].chips[0]
    assert last.base_cycles + last.all_to_cycles.max == 20_869_010
    assert sum(each.share for each in summary.run.shares) == pytest.approx(1)


def test_totals_of_steps_are_those_of_the_file(genuine: rp.Report) -> None:
    (stored,) = genuine.cycle_totals
    assert rp.total_steps(genuine.steps, 20_869_010, 1472) == stored


def test_cycles_by_tile_agree_with_their_summary(genuine: rp.Report) -> None:
    for step in genuine.steps:
        (on_chip,) = step.chips
        derived = rp.lockstep(0, 0, on_chip.cycles_by_tile or ())
        assert derived.cycles == on_chip.cycles
        assert derived.num_active_tiles == on_chip.num_active_tiles
        assert derived.tile_balance == pytest.approx(on_chip.tile_balance)


def test_liveness_adds_up(genuine: rp.Report) -> None:
    found = rp.liveness(genuine)
    assert len(found.step_names) == 38
    (chip,) = found.chips
    (peak,) = found.peaks
    assert chip.transient_bytes[-1] == 0
    assert sum(each.num_bytes for each in peak.variables) == peak.num_bytes
    always = sum(each.num_bytes for each in found.always_live_variables)
    assert always == chip.always_live_bytes


def test_variables_of_a_compute_set(genuine: rp.Report) -> None:
    names = {each.id: each.name for each in genuine.lowered_variables}
    used = [names[number] for number in genuine.compute_sets[0].variable_ids]
    assert used[1] == "message-cs0_loopBody-1-0"


def test_operations_are_programs(genuine: rp.Report) -> None:
    rows = {each.name: each for each in rp.operations(genuine)}
    body = rows["loopBody"]
    assert (body.kind, body.compute_cycles) == ("OnTileExecute", 9122)
    assert body.num_vertices == 1472
    assert rp.costliest(genuine, 1)[0].cycles == 20_707_920


def test_it_can_be_written_again(genuine: rp.Report, tmp_path: Path) -> None:
    contents = genuine.contents()
    with rp.open_report(rp.write_report(contents, tmp_path)) as copy:
        assert copy.contents() == contents


def test_it_is_no_model(genuine: rp.Report) -> None:
    view = rp.view_data(genuine)
    assert view["modelled"] is False
    assert view["generator"] == "Poplar 3.3.0 (de1f8de2a7)"
    assert view["notes"] == []
