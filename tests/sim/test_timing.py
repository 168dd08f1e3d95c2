from __future__ import annotations

from popple.program import (
    Call,
    GlobalExchange,
    If,
    Parallel,
    Program,
    Repeat,
    RepeatWhile,
    Sequence,
    Step,
    Switch,
    Sync,
    Variable,
    WriteUndef,
)
from popple.sim.timing import Timing, time_program
from tests.sim.machines import (
    LATENCY,
    SYNC,
    compute,
    make_target,
    one_chip,
    tiles,
    to_host,
    two_chips,
    use,
)

A, B = compute("a", 10, 20, 0, 0), compute("b", 0, 0, 5, 0)
X = Variable("x", tiles(4, 4, 4, 4))


def time(program: Program) -> Timing:
    return time_program(program, make_target(program.num_chips, program.tiles_per_chip))


def cycles(main: Step, **functions: Step) -> int:
    return time(one_chip(main, X, **functions)).cost.cycles


def test_steps_add_up_and_each_waits_for_its_longest_tile() -> None:
    assert cycles(Sequence((A, B))) == 20 + 5


def test_repeat_costs_its_body_so_many_times() -> None:
    assert cycles(Repeat(3, Sequence((A, B)))) == 3 * 25
    assert cycles(Repeat(0, A)) == 0


def test_a_loop_with_a_condition_tests_once_more_than_it_runs() -> None:
    assert cycles(RepeatWhile(B, "x", A, expected_count=4)) == 4 * 25 + 5


def test_choices_cost_their_dearest_way() -> None:
    assert cycles(If("x", A, B)) == 20
    assert cycles(Switch("x", ((0, B), (1, Sequence((A, B)))), A)) == 25


def test_a_call_costs_its_function() -> None:
    main = Sequence((Call("f"), Repeat(2, Call("g"))))
    assert cycles(main, f=A, g=Sequence((Call("f"), B))) == 20 + 2 * 25


def test_leaves_without_work_cost_nothing() -> None:
    assert (
        cycles(Sequence((WriteUndef("x"), use(("x",)), compute("e", 0, 0, 0, 0)))) == 0
    )


def test_branches_run_at_the_same_time() -> None:
    left, right = compute("l", 10, 0, 0, 0), compute("r", 0, 0, 7, 30)
    timing = time(two_chips(Parallel((Sequence((left, left)), right))))
    assert timing.cost.cycles == max(2 * 10, 30)
    assert timing.busy_by_chip[0] == (20, 30)
    assert timing.idle_by_chip == (10, 0)


def test_outside_of_branches_all_chips_wait() -> None:
    first, both = compute("f", 10, 0, 0, 0), compute("b", 5, 0, 0, 8)
    timing = time(two_chips(Sequence((first, both))))
    assert timing.cost.cycles == 10 + 8
    assert timing.busy_by_chip[0] == (10 + 5, 8)
    assert timing.idle_by_chip == (3, 10)


def test_a_sync_keeps_those_busy_who_run_that_part() -> None:
    left = Sequence((compute("l", 10, 0, 0, 0), Sync()))
    right = compute("r", 0, 0, 30, 0)
    timing = time(two_chips(Sequence((Sync(), Parallel((left, right))))))
    assert timing.cost.cycles == SYNC + max(10 + SYNC, 30)
    assert timing.busy_by_chip[0] == (SYNC + 10 + SYNC, SYNC + 30)


def test_a_function_with_a_sync_concerns_only_its_chips() -> None:
    body = Sequence((compute("l", 10, 0, 0, 0), Sync()))
    timing = time(two_chips(Call("f"), f=body))
    assert timing.busy_by_chip[0] == (10 + SYNC, 0)


def test_phases_are_told_apart() -> None:
    exchange = use()
    moved = type(exchange)("m", tiles(0, 40, 0, 0), tiles(40, 0, 0, 0))
    cost = time(one_chip(Sequence((moved, A)))).cost
    assert cost.compute_cycles == 20
    assert cost.exchange_cycles == LATENCY + 10
    assert cost.sync_cycles == SYNC
    assert cost.exchange_bytes == 40


def test_traffic_between_chips_syncs_all_of_them() -> None:
    step = GlobalExchange("g", ((0, 1, 8),), tiles(8, 0, 0, 0), tiles(0, 0, 8, 0))
    timing = time(two_chips(step))
    assert timing.cost.sync_cycles == SYNC + 600
    # A hop of 1,184 cycles and two cycles for 8 bytes into one tile.
    assert timing.cost.link_cycles == 1184 + 2
    assert timing.cost.link_bytes == 8
    assert timing.busy_by_chip[0] == (timing.cost.cycles,) * 2


def test_host_copies_of_chips_go_side_by_side() -> None:
    timing = time(two_chips(to_host(8, 0, 0, 4_000_000)))
    one = time(two_chips(to_host(0, 0, 0, 4_000_000)))
    assert timing.cost.host_cycles == one.cost.host_cycles
    assert timing.cost.host_bytes == 4_000_008
    assert 0 < timing.busy_by_chip[0][0] < timing.busy_by_chip[0][1]


def test_executions_are_counted_through_loops_and_calls() -> None:
    main = Repeat(3, Sequence((Call("f"), Call("f"), B)))
    timing = time(one_chip(main, X, f=RepeatWhile(B, "x", A, 2)))
    # main: loop, body, two calls, B; f: the loop, its condition, its body.
    assert timing.executions == (1, 3, 3, 3, 3, 6, 6 * 3, 6 * 2)


def test_only_the_dearest_way_is_executed() -> None:
    timing = time(one_chip(If("x", B, A), X))
    assert timing.executions == (1, 0, 1)


def test_costs_are_summed_by_op_and_by_function() -> None:
    work = compute("w", 10, 0, 0, 0, op="fc")
    timing = time(one_chip(Repeat(3, Sequence((Call("f"), work, B))), f=work))
    by_op = {op: cost.cycles for op, cost in timing.cost_by_op.items()}
    assert by_op == {"fc": 3 * 20, "": 3 * 5}
    by_function = {name: cost.cycles for name, cost in timing.cost_by_function.items()}
    assert by_function == {"main": 3 * 25, "f": 3 * 10}
