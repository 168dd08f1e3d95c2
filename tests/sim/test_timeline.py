from __future__ import annotations

import pytest

from popple.program import Call, Parallel, Program, Repeat, Sequence, Step
from popple.sim import Slice, Timeline
from popple.sim.timeline import make_timeline
from popple.sim.timing import time_program
from tests.sim.machines import compute, make_target, one_chip, two_chips

LEFT, RIGHT = compute("left", 10, 0, 0, 0), compute("right", 0, 0, 10, 0)


def timeline_of(
    program: Program, phases: dict[str, str] | None = None, limit: int = 100
) -> Timeline:
    target = make_target(program.num_chips, program.tiles_per_chip)
    return make_timeline(time_program(program, target), limit, phases)


def pipeline(num_batches: int) -> Program:
    """Two stages of 10 cycles on two chips, filled and drained."""
    stages = ("fwd0", "fwd1")
    ticks: list[Step] = []
    for tick in range(num_batches + 1):
        branches = [
            Call(name, f"{name}", stage, tick - stage)
            for stage, name in enumerate(stages)
            if 0 <= tick - stage < num_batches
        ]
        ticks.append(Parallel(tuple(branches)))
    return two_chips(Sequence(tuple(ticks)), fwd0=LEFT, fwd1=RIGHT)


def test_a_pipeline_shows_its_stages_and_micro_batches() -> None:
    slices = timeline_of(pipeline(2)).slices
    assert sorted(slices, key=lambda each: (each.chip, each.start_cycles)) == [
        Slice(0, 0, 10, "compute, stage 0", 0, 0, "compute"),
        Slice(0, 10, 20, "compute, stage 0", 0, 1, "compute"),
        Slice(1, 10, 20, "compute, stage 1", 1, 0, "compute"),
        Slice(1, 20, 30, "compute, stage 1", 1, 1, "compute"),
    ]


def test_a_stage_has_a_slice_for_each_phase_in_it() -> None:
    steps = [compute(name, 5, 0, 0, 0, op=name) for name in ("fc", "relu", "fc_grad")]
    program = one_chip(Call("f", "stage", 2, 7), f=Sequence(tuple(steps)))
    phases = {"fc": "forward", "relu": "forward", "fc_grad": "backward"}
    assert timeline_of(program, phases).slices == (
        Slice(0, 0, 10, "forward, stage 2", 2, 7, "forward"),
        Slice(0, 10, 15, "backward, stage 2", 2, 7, "backward"),
    )


def test_phases_that_take_turns_in_a_stage_are_one_slice_each() -> None:
    names = ("fc", "fc_grad", "loss", "relu_grad")
    steps = tuple(compute(name, 5, 0, 0, 0, op=name) for name in names)
    program = one_chip(Call("f", "stage", 2, 7), f=Sequence(steps))
    words = "forward", "backward", "forward", "backward"
    phases: dict[str, str] = dict(zip(names, words, strict=True))
    assert timeline_of(program, phases).slices == (
        Slice(0, 0, 10, "forward, stage 2", 2, 7, "forward"),
        Slice(0, 10, 20, "backward, stage 2", 2, 7, "backward"),
    )


def test_rounds_of_a_loop_count_micro_batches_on() -> None:
    # Two iterations of three micro-batches; the call in the loop is at number 1 first.
    inner = Repeat(3, Call("f", "f", 0, 1), "steady", micro_batches=1)
    program = one_chip(Repeat(2, inner, "iterations", micro_batches=3), f=LEFT)
    numbers = [each.micro_batch for each in timeline_of(program).slices]
    assert numbers == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("num_batches", [1, 2, 8])
def test_bubbles_shrink_with_more_micro_batches(num_batches: int) -> None:
    # Each chip works n of n + 1 ticks.
    idle = timeline_of(pipeline(num_batches)).idle_fraction
    assert idle == pytest.approx(1 / (num_batches + 1))


def test_leaves_of_one_op_make_one_slice() -> None:
    first, second = (compute(name, 5, 0, 0, 0, op="fc") for name in "ab")
    other = compute("c", 3, 0, 0, 0, op="relu_grad")
    program = one_chip(Sequence((first, second, other, LEFT)))
    phases = {"fc": "forward", "relu_grad": "backward"}
    assert timeline_of(program, phases).slices == (
        Slice(0, 0, 10, "fc", phase="forward", op="fc"),
        Slice(0, 10, 13, "relu_grad", phase="backward", op="relu_grad"),
        Slice(0, 13, 23, "left", phase="compute"),
    )


def test_loops_are_unrolled_up_to_the_limit() -> None:
    program = one_chip(Repeat(10, compute("f", 10, 0, 0, 0, op="fc")))
    assert timeline_of(program, {"fc": "forward"}, 3).slices == (
        Slice(0, 0, 100, "fc", phase="forward", op="fc"),
    )
    numbered = one_chip(Repeat(10, Call("f"), "loop", micro_batches=1), f=LEFT)
    ends = [
        (each.start_cycles, each.end_cycles, each.label, each.micro_batch)
        for each in timeline_of(numbered, limit=3).slices
    ]
    first = [(10 * n, 10 * n + 10, "f compute", n) for n in range(3)]
    assert ends == [*first, (30, 100, "f compute x 7", -1)]


def test_a_program_that_does_nothing_is_not_idle() -> None:
    timeline = timeline_of(one_chip(Sequence(())))
    assert (timeline.slices, timeline.idle_fraction) == ((), 0.0)
