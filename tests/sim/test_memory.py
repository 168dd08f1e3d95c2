from __future__ import annotations

from popple.program import (
    Category,
    Program,
    Sequence,
    TileVector,
    Variable,
)
from popple.sim import Memory
from popple.sim.liveness import find_liveness
from popple.sim.memory import find_memory
from popple.target import Chip
from tests.sim.machines import bow_chip, one_chip, tiles, use

OVERHEAD = 320 + 328  # control code and stacks of a tile that holds something
REGION_1 = 212_992
CAPACITY = 638_976

MAIN = Sequence(
    (use((), ("x",)), use(("x",), ("y",)), use(("y",), ("z",)), use(("z",)))
)


def memory_of(program: Program, chip: Chip | None = None) -> Memory:
    steps = program.steps
    liveness = find_liveness(program, steps)
    return find_memory(program, steps, liveness, chip or bow_chip())


def three(x: int, y: int, z: int, is_interleaved: bool = False) -> Memory:
    """x, y and z on tile 0: x and y live together, then y and z."""
    variables = (
        Variable(name, tiles(size, 0, 0, 0), is_interleaved=is_interleaved)
        for name, size in zip("xyz", (x, y, z), strict=True)
    )
    return memory_of(one_chip(MAIN, *variables))


def test_transient_memory_is_that_of_the_fullest_step() -> None:
    memory = three(100, 10, 50)
    assert memory.transient_bytes == tiles(110, 0, 0, 0)
    assert memory.total == tiles(OVERHEAD + 110, 0, 0, 0)
    # Steps: 0 sequence, 1 x, 2 x and y, 3 y and z, 4 z.
    assert memory.peak_step_by_tile == tiles(2, 0, 0, 0)
    assert three(50, 10, 100).peak_step_by_tile == tiles(3, 0, 0, 0)


def test_always_live_memory_comes_on_top() -> None:
    weights = Variable("w", tiles(0, 1000, 0, 0), is_always_live=True)
    table = Variable("t", tiles(0, 5, 0, 0), Category.CONSTANT)
    memory = memory_of(one_chip(Sequence(()), weights, table))
    assert memory.always_live_bytes == tiles(0, OVERHEAD + 1005, 0, 0)
    assert memory.by_category[Category.CONSTANT] == tiles(0, 5, 0, 0)


def test_categories_add_up_to_the_total() -> None:
    weights = Variable("w", tiles(7, 7, 0, 0), is_always_live=True)
    message = Variable("x", tiles(0, 9, 9, 0), Category.MESSAGE)
    memory = memory_of(one_chip(Sequence((use(("x",)),)), weights, message))
    assert memory.by_category[Category.VARIABLE] == tiles(7, 7, 0, 0)
    assert memory.by_category[Category.MESSAGE] == tiles(0, 9, 9, 0)
    added = sum(vector.total for vector in memory.by_category.values())
    assert added == memory.total.total


def test_interleaved_data_leave_a_gap_below_them() -> None:
    memory = three(100, 10, 50, is_interleaved=True)
    assert memory.interleaved == tiles(110, 0, 0, 0)
    assert memory.total[0] == OVERHEAD + 110
    assert memory.total_with_gaps == tiles(REGION_1 + 110, 0, 0, 0)


def test_no_gap_is_left_where_the_rest_fills_it() -> None:
    plain = Variable("w", tiles(300_000, 0, 0, 0), is_always_live=True)
    fast = Variable("f", tiles(8, 0, 0, 0), is_always_live=True, is_interleaved=True)
    memory = memory_of(one_chip(Sequence(()), plain, fast))
    assert memory.total_with_gaps[0] == 300_008 + OVERHEAD


def test_a_full_tile_fits_and_a_fuller_one_does_not() -> None:
    room = CAPACITY - OVERHEAD
    assert three(room, 0, 0).fits
    memory = three(room + 1, 0, 0)
    assert not memory.fits
    assert memory.overflow_by_tile == tiles(1, 0, 0, 0)
    assert memory.peak_by_chip == (CAPACITY + 1,)


def test_interleaved_data_must_fit_behind_the_plain_region() -> None:
    room = CAPACITY - REGION_1
    assert three(room, 0, 0, is_interleaved=True).fits
    memory = three(room + 4, 0, 0, is_interleaved=True)
    assert memory.overflow_by_tile == tiles(4, 0, 0, 0)


def test_code_must_fit_into_the_plain_region() -> None:
    code = Variable("c", tiles(REGION_1, 0, 0, 0), Category.VERTEX_CODE, True)
    memory = memory_of(one_chip(Sequence(()), code))
    # 320 B of control code are too many beside a region full of code.
    assert memory.overflow_by_tile == tiles(320, 0, 0, 0)


def test_an_empty_program_has_no_transient_memory() -> None:
    memory = memory_of(one_chip(Sequence(())))
    assert memory.transient_bytes == TileVector.zeros(4)
    assert memory.fits
