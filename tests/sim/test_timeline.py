from __future__ import annotations

import pytest

from popple.program import Call, Parallel, Program, Repeat, Sequence, Step
from popple.sim import Slice, Timeline
from popple.sim.timeline import guess_phase, make_timeline
from popple.sim.timing import time_program
from tests.sim.machines import compute, make_target, one_chip, two_chips

LEFT, RIGHT = compute("left", 10, 0, 0, 0), compute("right", 0, 0, 10, 0)


def timeline_of(program: Program, limit: int = 100) -> Timeline:
    target = make_target(program.num_chips, program.tiles_per_chip)
    return make_timeline(time_program(program, target), limit)


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
        Slice(0, 0, 10, "fwd0", 0, 0, "forward"),
        Slice(0, 10, 20, "fwd0", 0, 1, "forward"),
        Slice(1, 10, 20, "fwd1", 1, 0, "forward"),
        Slice(1, 20, 30, "fwd1", 1, 1, "forward"),
    ]


@pytest.mark.parametrize("num_batches", [1, 2, 8])
def test_bubbles_shrink_with_more_micro_batches(num_batches: int) -> None:
    # Each chip works n of n + 1 ticks.
    idle = timeline_of(pipeline(num_batches)).idle_fraction
    assert idle == pytest.approx(1 / (num_batches + 1))


def test_leaves_of_one_op_make_one_slice() -> None:
    first, second = (compute(name, 5, 0, 0, 0, op="fc") for name in "ab")
    other = compute("c", 3, 0, 0, 0, op="relu_grad")
    program = one_chip(Sequence((first, second, other, LEFT)))
    assert timeline_of(program).slices == (
        Slice(0, 0, 10, "fc"),
        Slice(0, 10, 13, "relu_grad", phase="backward"),
        Slice(0, 13, 23, "left", phase="compute"),
    )


def test_loops_are_unrolled_up_to_the_limit() -> None:
    program = one_chip(Repeat(10, Call("f", micro_batch=0)), f=LEFT)
    slices = timeline_of(program, limit=3).slices
    ends = [(each.start_cycles, each.end_cycles, each.label) for each in slices]
    assert ends == [(0, 10, "f"), (10, 20, "f"), (20, 30, "f"), (30, 100, "f x 7")]


def test_a_program_that_does_nothing_is_not_idle() -> None:
    timeline = timeline_of(one_chip(Sequence(())))
    assert (timeline.slices, timeline.idle_fraction) == ((), 0.0)


@pytest.mark.parametrize(
    ("label", "phase"),
    [
        ("stage 1 bwd", "backward"),
        ("Forward 3", "forward"),
        ("weight update", "update"),
        ("matmul", ""),
    ],
)
def test_phases_are_guessed_from_labels(label: str, phase: str) -> None:
    assert guess_phase(label) == phase
