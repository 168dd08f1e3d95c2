from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popple.errors import ProgramError
from popple.program import (
    Parallel,
    Program,
    Repeat,
    RepeatWhile,
    Sequence,
    Step,
    Sync,
    TileVector,
    Variable,
    parse_program,
    render_program,
)
from popple.sim import ExecutedStep, Simulation, simulate
from tests.program.strategies import leaves, programs, steps
from tests.sim.machines import SYNC, compute, make_target, one_chip, tiles, two_chips
from tests.sim.synthetic import make_program
from tests.sim.synthetic import make_target as make_large_target

A, B = compute("a", 10, 20, 0, 0), compute("b", 0, 0, 5, 0)
X = Variable("x", tiles(4, 4, 4, 4))


def run(program: Program) -> Simulation:
    return simulate(program, make_target(program.num_chips, program.tiles_per_chip))


def test_a_small_program_from_end_to_end() -> None:
    simulation = run(one_chip(Repeat(2, Sequence((A, Sync()))), X))
    assert simulation.cost.cycles == 2 * (20 + SYNC)
    assert simulation.seconds == pytest.approx(176 / 1.85e9)
    assert simulation.busy_cycles_by_chip == (176,)
    assert simulation.idle_cycles_by_chip == (0,)
    assert simulation.executions == (1, 2, 2, 2)
    assert simulation.cost_by_op[""].compute_cycles == 40
    assert simulation.cost_by_function["main"] == simulation.cost
    # 320 B control, 20 B loop, 4 B sync, 328 B stacks; 20 B more with vertices.
    assert (simulation.peak_tile, simulation.peak_tile_bytes) == (0, 692)
    assert simulation.fits
    assert [row.path for row in simulation.steps][1] == "main/Sequence"


def test_executed_steps_tell_when_each_leaf_runs() -> None:
    rows = list(run(one_chip(Repeat(2, Sequence((A, B))))).executed_steps())
    assert rows == [
        ExecutedStep(2, 0, 0, 20, tiles(10, 20, 0, 0)),
        ExecutedStep(3, 0, 20, 5, tiles(0, 0, 5, 0)),
        ExecutedStep(2, 0, 25, 20, tiles(10, 20, 0, 0)),
        ExecutedStep(3, 0, 45, 5, tiles(0, 0, 5, 0)),
    ]


def test_rounds_beyond_the_limit_make_one_row() -> None:
    program = one_chip(Repeat(10, Sequence((A, Repeat(3, B)))))
    *rows, last = run(program).executed_steps(limit=2)
    # A, one B, then two more rounds of B together; then nine rounds of all.
    assert [(row.step_id, row.num_rounds) for row in rows] == [(2, 1), (4, 1), (4, 2)]
    expected = tiles(9 * 10, 9 * 20, 9 * 15, 0)
    assert last == ExecutedStep(1, 0, 35, 9 * 35, expected, 9)


def test_a_while_loop_runs_its_condition_last() -> None:
    rows = run(one_chip(RepeatWhile(B, "x", A, 2), X)).executed_steps()
    assert [row.step_id for row in rows] == [1, 2, 1, 2, 1]


def test_branches_start_together_on_their_chips() -> None:
    left, right = compute("l", 10, 0, 0, 0), compute("r", 0, 0, 7, 30)
    rows = list(run(two_chips(Parallel((left, right)))).executed_steps())
    assert rows == [
        ExecutedStep(1, 0, 0, 10, tiles(10, 0)),
        ExecutedStep(2, 1, 0, 30, tiles(7, 30)),
    ]


@pytest.mark.parametrize("limit", [1, 10, 1000])
@settings(max_examples=25)
@given(program=programs(max_leaves=6))
def test_no_cycle_is_lost_in_executed_steps(limit: int, program: Program) -> None:
    simulation = run(program)
    busy: Counter[int] = Counter()
    for row in simulation.executed_steps(limit):
        busy[row.chip] += row.cycles
    assert tuple(busy[chip] for chip in range(2)) == simulation.busy_cycles_by_chip


@settings(max_examples=40)
@given(programs(max_leaves=6))
def test_what_holds_for_every_program(program: Program) -> None:
    simulation = run(program)
    cost = simulation.cost
    assert cost.cycles == sum(
        getattr(cost, f"{phase}_cycles")
        for phase in ("compute", "exchange", "sync", "link", "host")
    )
    assert max(simulation.busy_cycles_by_chip) <= cost.cycles
    assert all(idle >= 0 for idle in simulation.idle_cycles_by_chip)
    assert simulation.timeline.total_cycles == cost.cycles
    ends = [each.end_cycles for each in simulation.timeline.slices]
    assert max(ends, default=0) <= cost.cycles


@settings(max_examples=25)
@given(programs(max_leaves=6))
def test_the_same_program_gives_the_same_simulation(program: Program) -> None:
    assert run(program) == run(parse_program(render_program(program)))


BODIES = steps(leaves(num_tiles=4, num_chips=1), max_leaves=4)
VARIABLES = [Variable(name, TileVector.constant(4, 8)) for name in "abc"]


@settings(max_examples=40)
@given(BODIES, st.integers(0, 5))
def test_repeating_costs_so_many_bodies(body: Step, count: int) -> None:
    once = run(one_chip(body, *VARIABLES)).cost
    assert run(one_chip(Repeat(count, body), *VARIABLES)).cost == once * count


@settings(max_examples=40)
@given(BODIES)
def test_faster_exchange_never_slows_a_program(body: Step) -> None:
    program = one_chip(body, *VARIABLES)
    fast = simulate(program, make_target(exchange_bytes_per_cycle=16))
    assert fast.cost.cycles <= run(program).cost.cycles


def test_a_program_for_another_machine_is_refused() -> None:
    with pytest.raises(ProgramError, match="made for 1 chips of 4 tiles") as caught:
        simulate(one_chip(A), make_target(tiles_per_chip=8))
    assert "Plan it for this target" in caught.value.remedy


def test_a_malformed_program_is_refused() -> None:
    with pytest.raises(ProgramError, match="repeats -1 times"):
        run(one_chip(Repeat(-1, A)))


def test_ten_times_the_tiles_give_the_same_steps_and_liveness() -> None:
    few, many = make_program(60, 4, 147), make_program(60, 4, 1470)
    small = simulate(few, make_large_target(4, 147))
    large = simulate(many, make_large_target(4, 1470))
    assert len(small.timeline.slices) == len(large.timeline.slices)
    assert small.liveness == large.liveness
    assert large.cost.compute_cycles < small.cost.compute_cycles


def test_a_simulation_can_be_compared_with_another() -> None:
    program = one_chip(A, X)
    assert run(program) == run(replace(program))
    assert run(program) != run(one_chip(B, X))
