"""What one tile does in a reduction, as PopLibs would connect its vertices."""

from popple.graph import DType
from popple.plan.blocks.tile_reduction import (
    Arithmetic,
    Phase,
    Stretch,
    find_stretch,
    tile_cycles,
    tile_phases,
)

F16, F32 = DType.F16, DType.F32
HALVES = Arithmetic(F16, F32, F32)
FLOATS = Arithmetic(F32, F32, F32)


def test_a_stretch_is_rows_of_columns_of_neighbours() -> None:
    assert find_stretch((4, 3, 2), (False, True, False), 12) == Stretch(2, 3, 2)
    assert find_stretch((6272, 8), (False, True), 168) == Stretch(1, 8, 21)
    assert find_stretch((5, 4, 8), (True, False, True), 64) == Stretch(1, 8, 4, 2)


def test_dimensions_of_one_do_not_separate() -> None:
    assert find_stretch((4, 1, 8), (False, True, False), 32) == Stretch(32, 1, 1)


def test_one_grain_of_columns_stays_with_one_worker() -> None:
    # 21 rows of 8 halves: PopLibs guesses 30 + 42 cycles, cut in two 60 + 21.
    # 2 words: 16 + 2 (14 + 20).
    assert tile_phases(Stretch(1, 8, 21), HALVES, 6) == (Phase(1, 84),)


def test_long_columns_are_cut_and_added_up() -> None:
    # 32 rows of 8 halves: six cuts of 6 rows, then 6 rows of 4 words of floats.
    first, second = tile_phases(Stretch(1, 8, 32), HALVES, 6)
    assert first == Phase(6, 16 + 2 * (14 + 5), 6 * 8)
    assert second == Phase(1, 16 + 4 * (11 + 5))


def test_many_columns_are_dealt_to_the_workers() -> None:
    # 96 halves are 12 grains of 8: 2 for each of 6 workers.
    assert tile_phases(Stretch(1, 96, 4), HALVES, 6) == (Phase(6, 16 + 4 * 17),)


def test_groups_are_reduced_each_by_its_own_vertex() -> None:
    (phase,) = tile_phases(Stretch(1, 8, 4, 7), HALVES, 6)
    assert phase.num_vertices == 7


def test_whole_rows_are_dealt_to_the_workers() -> None:
    # 9 outputs of 16 floats: 2 a worker, the fifth has the last.
    assert tile_phases(Stretch(16, 9, 1), FLOATS, 6) == (Phase(5, 17 + 2 * 20),)


def test_columns_of_neighbours_take_two_phases() -> None:
    # 8 outputs of 4 neighbours, 4 rows: 4 workers with 2 outputs each.
    first, second = tile_phases(Stretch(4, 8, 4), HALVES, 6)
    assert first == Phase(4, 16 + 2 * (14 + 3), 8 * 4)
    assert second == Phase(4, 17 + 2 * (12 + 2))


def test_a_sum_is_cut_where_that_pays() -> None:
    assert len(tile_phases(Stretch(64, 1, 1), FLOATS, 6)) == 1
    first, second = tile_phases(Stretch(1200, 1, 1), FLOATS, 6)
    assert first == Phase(6, 17 + 12 + 100, 6)
    assert second == Phase(1, 17 + 12 + 3)


def test_cycles_of_a_tile_are_those_of_its_turns() -> None:
    # 7 vertices on 6 workers take two turns of 6 x 33 cycles.
    assert tile_cycles(Stretch(1, 8, 4, 7), HALVES, 6) == 2 * 6 * (16 + 2 * 17)
