from __future__ import annotations

import pytest

from popple.program import (
    Call,
    Category,
    Codelet,
    ComputeSet,
    Execute,
    GlobalExchange,
    Parallel,
    Program,
    Repeat,
    Sequence,
    Step,
    Sync,
    TileVector,
    Variable,
    VertexGroup,
)
from popple.sim.footprint import code_and_state
from popple.sim.liveness import find_liveness
from tests.sim.machines import bow_chip, compute, one_chip, tiles, to_host, two_chips

HELD = Variable("held", TileVector.constant(4, 4), is_always_live=True)
BASE = 320  # control code of a program without steps
SMALL, LARGE = Codelet("s", code_bytes=100, state_bytes=8), Codelet("l", code_bytes=50)


def taken(program: Program) -> dict[Category, TileVector]:
    steps = program.steps
    lives = find_liveness(program, steps).intervals
    return code_and_state(program, steps, lives, bow_chip())


def control_code(main: Step, **functions: Step) -> TileVector:
    return taken(one_chip(main, HELD, **functions))[Category.CONTROL_CODE]


def execute(name: str, codelet: Codelet, *counts: int) -> Execute:
    count = tiles(*counts)
    return Execute(ComputeSet(name, (VertexGroup(codelet, count, count),)))


def test_tiles_that_hold_something_have_stacks_and_a_program() -> None:
    held = Variable("held", tiles(4, 0, 0, 0), is_always_live=True)
    found = taken(one_chip(execute("a", SMALL, 0, 1, 0, 0), held))
    # 6 workers x 48 B + 40 B for the supervisor, as in a genuine profile.
    assert found[Category.STACK] == tiles(328, 328, 0, 0)
    assert found[Category.CONTROL_CODE] == tiles(BASE, BASE + 20, 0, 0)


def test_vertex_code_lies_once_on_every_tile_that_uses_it() -> None:
    main = Sequence((execute("a", SMALL, 3, 1, 0, 0), execute("b", SMALL, 0, 1, 1, 0)))
    assert taken(one_chip(main))[Category.VERTEX_CODE] == tiles(100, 100, 100, 0)


def test_different_codelets_each_have_code() -> None:
    main = Sequence((execute("a", SMALL, 1, 1, 0, 0), execute("b", LARGE, 0, 1, 1, 0)))
    assert taken(one_chip(main))[Category.VERTEX_CODE] == tiles(100, 150, 50, 0)


def test_every_vertex_has_state_once_however_often_it_runs() -> None:
    once = execute("a", SMALL, 3, 1, 0, 0)
    main = Sequence((once, Repeat(5, once), Call("f"), Call("f")))
    program = one_chip(main, f=execute("b", SMALL, 1, 0, 0, 0))
    assert taken(program)[Category.VERTEX_STATE] == tiles(8 * 4, 8, 0, 0)


def test_lists_are_those_of_each_vertex() -> None:
    group = VertexGroup(SMALL, tiles(2, 1, 0, 0), tiles(1, 1, 0, 0), list_bytes=30)
    found = taken(one_chip(Execute(ComputeSet("cs", (group,)))))
    assert found[Category.VERTEX_FIELD] == tiles(60, 30, 0, 0)
    assert found[Category.VERTEX_STATE] == tiles(16, 8, 0, 0)


def test_control_code_of_leaves() -> None:
    assert control_code(Sequence(())) == TileVector.constant(4, BASE)
    # 20 B where there are vertices, 12 B where a stream ends, 4 B for a sync.
    assert control_code(compute("a", 1, 0, 0, 0)) == tiles(BASE + 20, *[BASE] * 3)
    assert control_code(to_host(4, 0, 0, 0)) == tiles(BASE + 12, *[BASE] * 3)
    assert control_code(Sync()) == TileVector.constant(4, BASE + 4)


def test_two_groups_of_one_compute_set_are_launched_together() -> None:
    groups = (
        VertexGroup(SMALL, tiles(1, 1, 0, 0), tiles(1, 1, 0, 0)),
        VertexGroup(LARGE, tiles(0, 1, 1, 0), tiles(0, 1, 1, 0)),
    )
    code = control_code(Execute(ComputeSet("cs", groups)))
    assert code == tiles(BASE + 20, BASE + 20, BASE + 20, BASE)


def test_all_tiles_of_a_chip_follow_its_control_flow() -> None:
    work = compute("a", 1, 0, 0, 0)
    program = two_chips(Sequence((Repeat(2, work), Call("f"))), HELD, f=work)
    # Loop 20 B and call 8 B on both tiles of chip 0; 2 x 20 B where the work is.
    expected = tiles(BASE + 20 + 8 + 40, BASE + 20 + 8, BASE, BASE)
    assert taken(program)[Category.CONTROL_CODE] == expected


@pytest.mark.parametrize(
    ("num_bytes", "code_bytes", "header_bytes"), [(140, 104, 16), (524, 144, 32)]
)
def test_host_code_is_that_of_a_genuine_profile(
    num_bytes: int, code_bytes: int, header_bytes: int
) -> None:
    found = taken(one_chip(to_host(num_bytes, 0, 0, 0)))
    assert found[Category.HOST_CODE] == tiles(code_bytes, 0, 0, 0)
    assert found[Category.HOST_HEADER] == tiles(header_bytes, 0, 0, 0)


def test_packets_between_chips_have_headers_where_they_are_sent() -> None:
    step = GlobalExchange("g", ((0, 1, 300),), tiles(300, 0, 0, 0), tiles(0, 0, 300, 0))
    found = taken(two_chips(Parallel((step,))))
    # 300 B are two packets: (21 + 2 x 5) x 4 B of code at both ends.
    assert found[Category.GLOBAL_CODE] == tiles(124, 0, 124, 0)
    assert found[Category.GLOBAL_HEADER] == tiles(24, 0, 0, 0)
