"""From a modelled graph to a report file: nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from popple.graph import Strategy, parse_graph
from popple.options import ModelOptions, UpdateOptions
from popple.pipeline import Modelled, explain, model_graph, write_report
from popple.plan import PlanOptions
from popple.program import render_program
from popple.report import (
    Report,
    StreamCopyPayload,
    open_report,
    render_summary,
    summarize,
)
from popple.report.query.plan_record import parse_plan
from popple.target import load_target

TRAINING = ModelOptions(
    accumulation=4,
    device_iterations=2,
    micro_batch=2,
    update=UpdateOptions("sgd_update", 0, {"w": "dw"}),
)
GRAPH = """
graph "train" {
  input %x : f32[2,64]
  weight %w : f32[64,32]
  matmul %y : %y : f32[2,32] = (%x, %w) forward chip=0 stage=0 in "fc" at "m.py:7"
  permute %t : %t : f32[64,2] shares %x = (%x) {"order": [1, 0]} backward chip=0 stage=0
  matmul %dw : %dw : f32[64,32] = (%t, %y) backward chip=0 stage=0
  output %y
}
"""
LARGE = """
graph "large" {
  input %x : f32[4096,4096]
  weight %w : f32[4096,2048]
  matmul %y : %y : f32[4096,2048] = (%x, %w) forward chip=0 stage=0
  output %y
}
"""


@pytest.fixture(scope="module")
def modelled() -> Modelled:
    return model_graph(parse_graph(GRAPH), load_target("bow"), TRAINING)


@pytest.fixture(scope="module")
def report(
    modelled: Modelled, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Report]:
    directory = tmp_path_factory.mktemp("report")
    write_report(modelled, directory, framework="none", framework_version="1")
    with open_report(directory) as opened:
        yield opened


def test_cycles_and_memory_are_those_of_the_simulation(
    modelled: Modelled, report: Report
) -> None:
    summary = summarize(report)
    assert summary.run is not None
    assert summary.run.cycles == modelled.simulation.cost.cycles
    total = int(report.memory_by_tile.total_bytes.sum())
    assert total == modelled.simulation.memory.total.total


def test_samples_are_those_of_all_repetitions(report: Report) -> None:
    # micro-batch 2 x accumulation 4 x iterations 2
    assert report.info["samples_per_run"] == 16


def test_queues_of_the_host_hold_all_micro_batches(report: Report) -> None:
    # Accumulation 4 x iterations 2, each f32[2,64] in and f32[2,32] out.
    assert report.info["host_in_bytes"] == 8 * 2 * 64 * 4
    assert report.info["host_out_bytes"] == 8 * 2 * 32 * 4
    assert "4.0 KiB in, 2.0 KiB out in a run" in render_summary(report)


def test_steps_of_a_chip_follow_one_another(report: Report) -> None:
    ends = 0
    for step in report.steps:
        for on in step.chips:
            assert on.base_cycles >= ends
            ends = on.base_cycles + on.cycles


def test_the_last_step_ends_with_the_run(modelled: Modelled, report: Report) -> None:
    last = report.steps[-1].chips[0]
    assert last.base_cycles + last.cycles == modelled.simulation.cost.cycles


def test_operations_carry_the_users_line_and_the_plan(report: Report) -> None:
    forward = next(op for op in report.operations if op.name == "y")
    assert (forward.module, forward.source_line) == ("fc", "m.py:7")
    assert forward.num_executions == 8  # accumulation 4 x iterations 2
    assert "method" in forward.plan_json


def test_steps_of_an_operation_add_up_to_it(report: Report) -> None:
    for op in report.operations:
        steps = parse_plan(op.plan_json).steps
        assert sum(step.cycles for step in steps) == op.cycles


def test_a_model_is_explained_as_its_report_is(
    modelled: Modelled, report: Report
) -> None:
    assert explain(modelled, "y") == explain(report, "y")
    assert explain(modelled).render() == explain(report).render()


def test_a_plan_that_memory_slowed_down_is_limited_by_it() -> None:
    graph = parse_graph(LARGE)
    options = ModelOptions(plan=PlanOptions(memory_proportion=0.05))
    model = model_graph(graph, load_target("bow"), options)
    found = explain(model, "y")
    assert found.operation.limited_by == "memory"
    assert found.bound_by in found.cycles_by_class


def test_energy_of_the_report_is_that_of_the_simulation(
    modelled: Modelled, report: Report
) -> None:
    run = summarize(report).run
    assert run is not None
    assert run.energy is not None
    assert run.energy.joules == pytest.approx(modelled.energy.joules)
    assert run.energy.mean_watts == pytest.approx(modelled.energy.mean_watts)
    assert run.energy.joules_per_sample == pytest.approx(modelled.energy.joules / 16)


def test_cycles_of_operations_add_up_to_the_run(
    modelled: Modelled, report: Report
) -> None:
    # One chip, so nothing overlaps: every cycle belongs to one row.
    total = sum(op.cycles for op in report.operations)
    assert total == modelled.simulation.cost.cycles


def test_views_cost_nothing_and_have_no_row(report: Report) -> None:
    assert "t" not in {op.name for op in report.operations}


def test_tile_cycles_add_up_to_cycles_times_tiles(report: Report) -> None:
    (totals,) = report.cycle_totals
    work = totals.tile_cycles
    everything = (
        work.compute
        + work.internal_exchange
        + work.inter_chip_exchange
        + work.stream_copy
        + work.stream_copy_begin
        + work.stream_copy_end
        + work.sync
    )
    assert everything == totals.cycles * 1472


def test_categories_add_up_to_the_total(report: Report) -> None:
    by_category = sum(
        sum(count * value for count, value in each.interleaved)
        + sum(count * value for count, value in each.non_interleaved)
        for each in report.memory_by_category
    )
    assert by_category == int(report.memory_by_tile.total_bytes.sum())


TWO_STAGES = """
graph "infer" num_chips=2 {
  input %x : f32[2,64]
  relu %a : %a : f32[2,64] = (%x) forward chip=0 stage=0
  exp %b : %b : f32[2,64] = (%a) forward chip=1 stage=1
  output %b
}
"""


def test_a_pipeline_has_a_timeline_of_stages(tmp_path: Path) -> None:
    options = ModelOptions(strategy=Strategy.PIPELINED, device_iterations=4)
    target = load_target("bow-pod4", num_chips=2)
    pipeline = model_graph(parse_graph(TWO_STAGES), target, options)
    write_report(pipeline, tmp_path, framework="none", framework_version="1")
    with open_report(tmp_path) as report:
        stages = {(s.chip, s.stage) for s in report.timeline if "copies" not in s.label}
    assert stages >= {(0, 0), (1, 1)}


def test_writing_twice_gives_the_same_program(modelled: Modelled) -> None:
    again = model_graph(parse_graph(GRAPH), load_target("bow"), TRAINING)
    assert render_program(again.program) == render_program(modelled.program)


def test_runs_follow_one_another_and_are_alike(
    modelled: Modelled, report: Report, tmp_path: Path
) -> None:
    write_report(
        modelled, tmp_path, framework="none", framework_version="1", num_runs=2
    )
    with open_report(tmp_path) as twice:
        assert [run.id for run in twice.runs] == [0, 1]
        assert len(twice.steps) == 2 * len(report.steps)
        length = modelled.simulation.cost.cycles
        first, again = report.steps[0].chips[0], twice.steps[len(report.steps)].chips[0]
        assert again.base_cycles == first.base_cycles + length
        # Both took as long as one does.
        assert [each.cycles for each in twice.cycle_totals] == [length, length]


def test_what_is_expected_of_a_stream_does_not_wait_for_the_host(
    report: Report,
) -> None:
    streams = [
        (program.id, program.payload.traffic)
        for program in report.programs
        if isinstance(program.payload, StreamCopyPayload)
    ]
    executed = {step.program_id: step.chips[0].cycles for step in report.steps}
    assert streams
    for number, traffic in streams:
        moved = (*traffic.received_bytes_by_tile, *traffic.sent_bytes_by_tile)
        words = sum(count * size for count, size in moved) // 4
        tiles = sum(count for count, size in moved if size)
        (on_chip,) = traffic.cycles_by_tile
        assert max(cycles for _, cycles in on_chip) == words + 18 * tiles
        assert executed[number] > 1000
