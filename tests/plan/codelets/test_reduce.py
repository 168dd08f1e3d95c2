"""Reduction formulas. Six workers, 33 cycles for the supervisor."""

from popple.graph import DType
from popple.plan.codelets.reduce import (
    continuous_reduce_cycles,
    scalar_reduce_cycles,
    strided_reduce_cycles,
    tile_reduce_cycles,
)

F16, F32 = DType.F16, DType.F32


def test_to_one_scalar() -> None:
    # 120 floats: 20 a worker, 10 words; then 6 parts, 3 words.
    assert scalar_reduce_cycles(120, F32, 1, 6) == 33 + 6 * ((22 + 10) + (22 + 3))


def test_rows_to_scalars() -> None:
    # 12 outputs: 2 a worker; 16 halves are 4 words, 12 more an output.
    assert continuous_reduce_cycles(12, 16, F16, 1, 6) == 33 + 6 * (17 + 2 * (12 + 4))


def test_columns_to_a_row() -> None:
    # 24 floats: 12 words, 2 a worker; 5 rows are 4 additions, 9 more a word.
    assert strided_reduce_cycles(24, 5, F32, 1, 6) == 33 + 6 * (16 + 2 * (9 + 4))


def test_the_codelet_follows_from_the_shape() -> None:
    rows = tile_reduce_cycles(192, 12, True, F16, 1, 6)
    assert rows == continuous_reduce_cycles(12, 16, F16, 1, 6)
    columns = tile_reduce_cycles(120, 24, False, F32, 1, 6)
    assert columns == strided_reduce_cycles(24, 5, F32, 1, 6)
    assert tile_reduce_cycles(120, 1, True, F32, 1, 6) == 33 + 6 * 57


def test_nothing_costs_nothing() -> None:
    assert tile_reduce_cycles(0, 0, True, F32, 1, 6) == 0
