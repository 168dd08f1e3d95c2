"""Pipelines: which stage works on which micro-batch in which cycle."""

from collections import Counter

import pytest

from popple.graph import Graph, parse_graph
from popple.place import AccumulateGradients, Pipeline, run_passes
from popple.plan import plan_graph
from popple.program import (
    Call,
    GlobalExchange,
    Parallel,
    Program,
    Repeat,
    Sequence,
    Step,
    StreamCopy,
    children_of,
    verify,
)
from tests.plan.graphs import inference_pipeline, pipeline
from tests.plan.machines import bow


def lower(graph: Graph) -> Program:
    program = plan_graph(graph, bow(2)).program
    verify(program)
    return program


def cycles_of(program: Program) -> tuple[Step, ...]:
    main = program.main
    assert isinstance(main, Sequence)
    first = main.steps[0]
    assert isinstance(first, Sequence)
    return first.steps if first.name == "pipeline" else main.steps


def calls(step: Step, times: int = 1) -> Counter[str]:
    """How often each function is called, loops counted."""
    if isinstance(step, Call):
        return Counter({step.function: times})
    times *= step.count if isinstance(step, Repeat) else 1
    found: Counter[str] = Counter()
    for child in children_of(step):
        found += calls(child, times)
    return found


@pytest.mark.parametrize("accumulation", [1, 2, 3, 4, 5, 17])
def test_every_stage_runs_once_for_every_micro_batch(accumulation: int) -> None:
    found = calls(lower(pipeline(accumulation)).main)
    # 3 stages: the copies run in every cycle, also while it fills and drains.
    assert found.pop("copies") == accumulation + 2
    assert found == dict.fromkeys(("stage0", "stage1", "stage2"), accumulation)


def test_fill_steady_and_drain() -> None:
    # 3 stages, 5 micro-batches: 2 cycles fill, 3 are equal, 2 drain.
    steps = cycles_of(lower(pipeline(5)))
    assert [type(step) for step in steps] == [
        Sequence,
        Sequence,
        Repeat,
        Sequence,
        Sequence,
    ]
    assert [sum(calls(step).values()) for step in steps] == [2, 3, 12, 3, 2]


def test_fewer_micro_batches_than_stages_need_no_loop() -> None:
    # 3 stages, 2 micro-batches: 4 cycles.
    steps = cycles_of(lower(pipeline(2)))
    assert [type(step) for step in steps] == [Sequence] * 4


def test_stages_of_one_chip_run_one_after_the_other() -> None:
    steady = cycles_of(lower(pipeline(5)))[2]
    assert isinstance(steady, Repeat)
    assert isinstance(steady.body, Sequence)
    stages, copies = steady.body.steps
    assert isinstance(stages, Parallel)
    assert isinstance(copies, Call)
    names = [list(calls(branch)) for branch in stages.branches]
    assert names == [["stage0", "stage2"], ["stage1"]]


def test_calls_carry_stage_micro_batch_and_label() -> None:
    last = cycles_of(lower(pipeline(5)))[-1]
    call = last
    while not isinstance(call, Call):
        call = children_of(call)[0]
    assert (call.stage, call.micro_batch) == (2, 4)
    assert call.label == "backward, stage 2"


def test_the_last_forward_stage_does_both() -> None:
    second = cycles_of(lower(pipeline(5)))[1]
    assert isinstance(second, Sequence)
    assert isinstance(second.steps[0], Parallel)
    branch = second.steps[0].branches[1]
    assert isinstance(branch, Sequence)
    assert isinstance(branch.steps[0], Call)
    assert branch.steps[0].label == "forward and backward, stage 1"


def test_streams_belong_to_the_stages_that_use_them() -> None:
    functions = lower(pipeline()).functions
    found = {
        name: [s.name for s in children_of(body) if isinstance(s, StreamCopy)]
        for name, body in functions.items()
    }
    assert found["stage0"] == ["x/stream_in"]
    assert found["stage1"] == ["f1/stream_out"]
    assert found["stage2"] == []


def test_copies_of_all_stages_are_one_exchange() -> None:
    graph = pipeline()
    (copy,) = children_of(lower(graph).functions["copies"])
    assert isinstance(copy, GlobalExchange)
    made = {op.outputs[0] for op in graph.ops if op.kind == "chip_copy"}
    assert set(copy.writes) == made
    assert [flow[:2] for flow in copy.flows] == [(0, 1), (1, 0)]
    sent = sum(num_bytes for _, _, num_bytes in copy.flows)
    assert copy.sent_by_tile.total == copy.received_by_tile.total == sent


def test_updates_follow_the_pipeline_with_chips_in_parallel() -> None:
    main = lower(pipeline()).main
    assert isinstance(main, Sequence)
    names = [step.name for step in main.steps if isinstance(step, Parallel)]
    assert names == ["collectives0", "update1"]


@pytest.mark.parametrize("device_iterations", [1, 2, 6])
def test_inference_overlaps_device_iterations(device_iterations: int) -> None:
    program = lower(inference_pipeline(device_iterations))
    found = calls(program.main)
    assert found["stage0"] == found["stage1"] == device_iterations
    # 2 stages: one cycle more than iterations.
    steps = children_of(program.main)
    count = sum(s.count if isinstance(s, Repeat) else 1 for s in steps)
    assert count == device_iterations + 1


def interleaved(accumulation: int) -> Program:
    text = """graph "pipe" num_chips=3 {
      input %x : f32[64,96]
      relu %a : %a : f32[64,96] = (%x) forward chip=0 stage=0
      relu %b : %b : f32[64,96] = (%a) forward chip=1 stage=1
      relu %c : %c : f32[64,96] = (%b) forward chip=2 stage=2
      relu_grad %dc : %dc : f32[64,96] = (%c, %c) backward chip=2 stage=2
      relu_grad %db : %db : f32[64,96] = (%dc, %b) backward chip=1 stage=1
      relu_grad %da : %da : f32[64,96] = (%db, %a) backward chip=0 stage=0
      output %c
    }"""
    passes = [AccumulateGradients(accumulation), Pipeline(False, interleaved=True)]
    program = plan_graph(run_passes(parse_graph(text), passes), bow(3)).program
    verify(program)
    return program


@pytest.mark.parametrize("accumulation", [1, 2, 5, 12])
def test_interleaved_stages_run_once_for_every_micro_batch(accumulation: int) -> None:
    found = calls(interleaved(accumulation).main)
    stages = {name: count for name, count in found.items() if "stage" in name}
    assert stages == {f"stage{number}": accumulation for number in range(5)}


def test_an_interleaved_chip_has_one_stage_in_a_cycle() -> None:
    steps = cycles_of(interleaved(12))
    (loop,) = (step for step in steps if isinstance(step, Repeat))
    # 5 stages in 6 cycles, micro-batches every second one: two cycles in turn.
    first, second = (children_of(cycle)[0] for cycle in children_of(loop.body))
    assert sorted(calls(first) + calls(second)) == [f"stage{n}" for n in range(5)]
    branches = [*children_of(first), *children_of(second)]
    assert all(sum(calls(branch).values()) == 1 for branch in branches)
