from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from popple.program import (
    Call,
    Category,
    If,
    Parallel,
    Program,
    Repeat,
    RepeatWhile,
    Sequence,
    Step,
    TileVector,
    Variable,
    WriteUndef,
)
from popple.sim import Interval, Liveness
from popple.sim.flow import StepTree, find_uses, live_sets
from popple.sim.liveness import find_liveness
from popple.sim.straight import straight_intervals
from tests.program.strategies import NAMES, accesses, steps
from tests.sim.machines import one_chip, tiles, two_chips, use
from tests.sim.naive import TooManyRuns, live_steps

X = Variable("x", tiles(1, 2, 0, 0))
READ, WRITE, IDLE = use(("x",)), use((), ("x",)), use()
CHANGE = use(("x",), ("x",))


def liveness_of(program: Program) -> Liveness:
    return find_liveness(program, program.steps)


def intervals(*steps: Step, **functions: Step) -> tuple[Interval, ...]:
    """When x lives in a sequence; step 0 is the sequence itself."""
    program = one_chip(Sequence(steps), X, **functions)
    return liveness_of(program).intervals["x"]


def test_a_variable_lives_from_its_write_to_its_last_read() -> None:
    assert intervals(IDLE, WRITE, IDLE, READ, READ, IDLE) == ((2, 5),)


def test_a_write_after_a_read_begins_new_contents() -> None:
    assert intervals(WRITE, READ, IDLE, WRITE, READ) == ((1, 2), (4, 5))


def test_a_write_after_a_write_continues_the_same_contents() -> None:
    assert intervals(WRITE, IDLE, WRITE, IDLE, READ) == ((1, 5),)


def test_contents_end_where_the_program_says() -> None:
    assert intervals(WRITE, IDLE, WriteUndef("x"), IDLE, WRITE) == ((1, 1), (5, 5))


def test_what_is_read_first_was_there_from_the_start() -> None:
    assert intervals(IDLE, READ, IDLE) == ((0, 2),)


def test_an_unused_variable_never_lives() -> None:
    assert intervals(IDLE) == ()


# In the loops below: 0 sequence, 1 loop, 2 its body, 3, 4, 5 the steps of the body.


def test_contents_made_anew_in_every_round_do_not_cross_it() -> None:
    assert intervals(Repeat(3, Sequence((IDLE, WRITE, READ, IDLE)))) == ((4, 5),)


def test_contents_for_the_next_round_live_through_the_loop() -> None:
    body = Sequence((IDLE, READ, WRITE, IDLE))
    assert intervals(Repeat(3, body), IDLE) == ((0, 6),)
    assert intervals(Repeat(1, body), IDLE) == ((0, 5),)


def test_contents_from_outside_live_through_the_loop() -> None:
    assert intervals(WRITE, Repeat(3, Sequence((READ, IDLE))), IDLE) == ((1, 5),)


def test_contents_collected_over_rounds_live_through_the_loop() -> None:
    # 1 idle, 2 loop, 3 body, 4 idle, 5 write, a part each round; 6 reads all parts.
    assert intervals(IDLE, Repeat(3, Sequence((IDLE, WRITE))), READ) == ((3, 6),)


def test_a_loop_that_never_runs_holds_nothing() -> None:
    assert intervals(WRITE, Repeat(0, READ), IDLE) == ((1, 1),)


def test_a_condition_reads_its_predicate() -> None:
    # 0 sequence, 1 the write, 2 if, 3 and 4 its branches.
    assert intervals(WRITE, If("x", IDLE, IDLE)) == ((1, 2),)
    assert intervals(WRITE, If("x", READ, IDLE), IDLE) == ((1, 3),)


def test_a_while_loop_tests_its_predicate_after_the_condition() -> None:
    # 1 loop, 2 condition, 3 body: what the condition writes is read before the body.
    assert intervals(RepeatWhile(WRITE, "x", IDLE)) == ((2, 2),)
    assert intervals(RepeatWhile(IDLE, "x", WRITE)) == ((0, 3),)


def test_contents_kept_across_a_call_live_in_the_whole_function() -> None:
    # 0 sequence, 1 write, 2 call, 3 read; f: 4 sequence, 5, 6.
    body = Sequence((IDLE, IDLE))
    assert intervals(WRITE, Call("f"), READ, f=body) == ((1, 6),)


def test_only_the_calls_that_need_them_keep_contents() -> None:
    # 1 call, 2 write, 3 call, 4 read, 5 call; f: 6. x is dead before step 2, after 4.
    main = (Call("f"), WRITE, Call("f"), READ, Call("f"))
    assert intervals(*main, f=IDLE) == ((2, 4), (6, 6))


def test_a_function_that_makes_contents_anew_ends_the_old_ones() -> None:
    # 1 write, 2 read, 3 call, 4 read; f: 5 sequence, 6 idle, 7 write.
    main = (WRITE, READ, Call("f"), READ)
    assert intervals(*main, f=Sequence((IDLE, WRITE))) == ((1, 2), (4, 4), (7, 7))


def test_a_function_never_called_holds_nothing() -> None:
    assert intervals(WRITE, f=Sequence((WRITE, READ))) == ((1, 1),)


def test_branches_are_analysed_in_turn() -> None:
    # 0 parallel, 1 left, 2 write, 3 read, 4 right, 5 idle, 6 read and write.
    left, right = Sequence((WRITE, READ)), Sequence((IDLE, CHANGE))
    program = two_chips(Parallel((left, right)), X)
    assert liveness_of(program).intervals["x"] == ((2, 6),)


def test_always_live_variables_and_constants_stay() -> None:
    weights = Variable("w", tiles(4, 0, 0, 0), is_always_live=True)
    constant = Variable("c", tiles(4, 0, 0, 0), Category.CONSTANT)
    liveness = liveness_of(one_chip(Sequence((WRITE, READ)), X, weights, constant))
    assert liveness.always_live == ("w", "c")
    assert liveness.is_live("w", 0)
    assert [liveness.is_live("x", step) for step in range(3)] == [False, True, True]
    assert liveness.live_at(1) == ("x",)


def test_bytes_are_summed_by_step_and_chip() -> None:
    both = Variable("y", tiles(10, 10, 0, 30))
    main = Sequence((use((), ("x",)), use(("x",), ("y",)), use(("y",))))
    liveness = liveness_of(two_chips(main, X, both))
    # x has 3 B on chip 0; y has 20 B on chip 0 and 30 on chip 1.
    expected = [[0, 0], [3, 0], [23, 30], [20, 30]]
    assert liveness.transient_bytes.tolist() == expected
    assert liveness.peak_step_by_chip == (2, 2)


def make_program(main: Step, **functions: Step) -> Program:
    variables = {name: Variable(name, TileVector.zeros(2)) for name in NAMES}
    return Program("p", 1, 2, variables, main, functions)


def analysed(program: Program) -> dict[str, set[int]]:
    return {
        name: {step for first, last in lives for step in range(first, last + 1)}
        for name, lives in liveness_of(program).intervals.items()
    }


def naive(program: Program) -> dict[str, set[int]]:
    try:
        return live_steps(program)
    except TooManyRuns:
        assume(False)
        raise


@settings(max_examples=300)
@given(steps(accesses(), max_leaves=7))
def test_the_analysis_finds_what_running_finds(main: Step) -> None:
    program = make_program(main)
    assert analysed(program) == naive(program)


@settings(max_examples=40)
@given(st.data())
def test_functions_are_never_thought_to_need_less(data: st.DataObject) -> None:
    inner = data.draw(steps(accesses(), max_leaves=2))
    outer = data.draw(steps(accesses(), ["f"], max_leaves=2))
    main = data.draw(steps(accesses(), ["f", "g"], max_leaves=4))
    program = make_program(main, f=inner, g=outer)
    found = analysed(program)
    assert all(live <= found[name] for name, live in naive(program).items())


def test_many_variables_are_analysed_in_groups() -> None:
    names = [f"v{index}" for index in range(5000)]
    variables = [Variable(name, tiles(4, 0, 0, 0)) for name in names]
    main = Sequence(tuple(use((), (name,)) for name in names))
    found = liveness_of(one_chip(main, *variables)).intervals
    assert list(found) == names
    assert all(found[name] == ((i + 1, i + 1),) for i, name in enumerate(names))


@settings(max_examples=200)
@given(st.data())
def test_uses_in_one_stretch_tell_what_the_whole_program_tells(
    data: st.DataObject,
) -> None:
    main = data.draw(steps(accesses(), ["f"], max_leaves=7))
    program = make_program(main, f=data.draw(steps(accesses(), max_leaves=2)))
    tree, names = StepTree(program, program.steps), [*program.variables]
    (uses,) = find_uses(names, program.steps, len(names))
    live = live_sets(uses, len(names), tree)
    for name, intervals in straight_intervals(names, tree).items():
        inside = {step for first, last in intervals for step in range(first, last + 1)}
        bit = 1 << names.index(name)
        assert inside == {step for step, each in enumerate(live) if each & bit}
