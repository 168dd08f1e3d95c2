"""Reduction formulas, of one worker."""

from popple.graph import DType
from popple.plan.codelets.reduce import continuous_reduce_cycles, strided_reduce_cycles

F16, F32 = DType.F16, DType.F32


def test_rows_to_scalars() -> None:
    # 2 outputs; 16 halves are 4 words, 12 more an output.
    assert continuous_reduce_cycles(2, 16, F16, 1) == 17 + 2 * (12 + 4)


def test_columns_to_a_row() -> None:
    # 4 floats are 2 words; 5 rows are 4 additions, 6 + 5 more a word.
    assert strided_reduce_cycles(4, 5, F32, 1) == 16 + 2 * (11 + 4)


def test_halves_take_longer_to_store() -> None:
    assert strided_reduce_cycles(4, 5, F16, 1) == 16 + (14 + 4)


def test_slow_operations_pay_for_every_word() -> None:
    quick, slow = (strided_reduce_cycles(2, 11, F32, step) for step in (1, 23))
    assert slow - quick == 22 * 10
