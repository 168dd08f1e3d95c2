from __future__ import annotations

from hypothesis import given, settings

from popple.program import (
    Call,
    If,
    Program,
    Repeat,
    Sequence,
    Sync,
    WriteUndef,
    call_order,
    child_ids,
    children_of,
    root_ids,
)
from tests.program.strategies import programs

LOOP = Repeat(3, Sequence((Sync(), Call("f", label="go"))), "loop")
PROGRAM = Program(
    "p",
    1,
    2,
    {},
    Sequence((LOOP, Sync()), "train"),
    {"f": Sequence((Call("g"),)), "g": WriteUndef("x")},
)


def test_steps_are_numbered_depth_first() -> None:
    rows = PROGRAM.steps
    assert [(row.id, row.parent_id, row.end_id, row.path) for row in rows] == [
        (0, -1, 6, "main"),
        (1, 0, 5, "main/loop"),
        (2, 1, 5, "main/loop/Sequence"),
        (3, 2, 4, "main/loop/Sequence/Sync"),
        (4, 2, 5, "main/loop/Sequence/go"),
        (5, 0, 6, "main/Sync"),
        (6, -1, 8, "f"),
        (7, 6, 8, "f/g"),
        (8, -1, 9, "g"),
    ]


def test_roots_and_children_follow_from_the_numbers() -> None:
    rows = PROGRAM.steps
    assert root_ids(rows) == {"main": 0, "f": 6, "g": 8}
    assert list(child_ids(rows, 0)) == [1, 5]
    assert list(child_ids(rows, 5)) == []


def test_a_step_in_two_places_has_two_numbers() -> None:
    sync = Sync()
    rows = Program("p", 1, 1, {}, If("x", sync, sync)).steps
    assert [row.id for row in rows if row.step is sync] == [1, 2]


def test_callees_come_before_callers() -> None:
    assert call_order(PROGRAM.functions) == ("g", "f")


@settings(max_examples=40)
@given(programs())
def test_the_numbers_describe_the_tree(program: Program) -> None:
    rows = program.steps
    assert [row.id for row in rows] == list(range(len(rows)))
    for row in rows:
        inner = [rows[child] for child in child_ids(rows, row.id)]
        assert tuple(each.step for each in inner) == children_of(row.step)
        assert all(each.parent_id == row.id for each in inner)
