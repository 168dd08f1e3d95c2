"""Element-wise formulas, with the arithmetic written out. Six workers throughout."""

import pytest

from popple.graph import OPS, DType
from popple.plan.codelets import elementwise as codelets
from popple.plan.codelets.rates import multi_codelet, rates

F16, F32, I32 = DType.F16, DType.F32, DType.I32
ADD = codelets.BINARY["add"]


def test_add_of_halves() -> None:
    # 96 elements: 16 a worker, 4 words of 4 halves, 3 cycles each.
    assert codelets.binary_cycles(ADD.of(F16), F16, 96, 6) == 11 + 6 * (26 + 3 * 4)


def test_add_of_floats() -> None:
    # 96 elements: 16 a worker, 8 words of 2 floats, 3 cycles each.
    assert codelets.binary_cycles(ADD.of(F32), F32, 96, 6) == 11 + 6 * (29 + 3 * 8)


def test_scalar_operand_saves_its_load() -> None:
    # 96 halves: 4 words a worker, 2 cycles each instead of 3.
    assert codelets.scalar_cycles(ADD.of(F16), F16, 96, 6) == 11 + 6 * (20 + 2 * 4)


def test_exp_of_halves_has_a_longer_prologue() -> None:
    assert codelets.unary_cycles("exp", F16, 96, 6) == 20 + 6 * (33 + 4 * 4)
    assert codelets.unary_cycles("log", F16, 96, 6) == 20 + 6 * (17 + 4 * 4)


def test_results_in_place_have_longer_prologues() -> None:
    # 12 halves: 2 a worker, one word.
    unary = codelets.unary_cycles("log", F16, 12, 6, is_in_place=True)
    assert unary == 20 + 6 * (55 + 4)
    binary = codelets.binary_cycles(ADD.of(F16), F16, 12, 6, is_in_place=True)
    assert binary == 11 + 6 * (58 + 3)


def test_erf_goes_one_element_at_a_time() -> None:
    # 12 elements: 2 a worker, 41 cycles each.
    assert codelets.unary_cycles("erf", F32, 12, 6) == 20 + 6 * (17 + 2 * 41)


def test_powers_call_the_library() -> None:
    # 12 elements: 2 a worker, 312 cycles each.
    power = codelets.BINARY["pow"].of(F32)
    assert codelets.binary_cycles(power, F32, 12, 6) == 11 + 6 * (29 + 2 * 312)


def test_integers_are_compared_in_fours() -> None:
    # 96 elements: 16 a worker, 4 times 22 cycles, or 26 where they may be equal.
    less, at_most = (codelets.BINARY[kind].of(I32) for kind in ("less", "less_equal"))
    assert codelets.binary_cycles(less, I32, 96, 6) == 11 + 6 * (29 + 4 * 22)
    assert codelets.binary_cycles(at_most, I32, 96, 6) == 11 + 6 * (29 + 4 * 26)


def test_rows_with_one_factor_each() -> None:
    # 12 rows: 2 a worker; 16 halves are 4 words of 2 cycles, 7 more a row.
    cycles = codelets.vector_outer_cycles(12, 16, F16, 6)
    assert cycles == 11 + 6 * (15 + 2 * (7 + 2 * 4))


def test_one_long_row_is_shared_by_the_workers() -> None:
    # 480 halves are 120 words: 20 a worker, 25 more for the shared row.
    cycles = codelets.vector_outer_cycles(1, 480, F16, 6)
    assert cycles == 11 + 6 * (15 + 25 + 2 * 20)


def test_gelu_gradient() -> None:
    # 96 halves: 4 words a worker, 15 cycles each.
    assert codelets.activation_grad_cycles("gelu_grad", F16, 96, 6) == 9 + 6 * (20 + 60)


@pytest.mark.parametrize(
    ("source", "result", "loop"),
    [(F16, F32, 8), (F32, F16, 8), (I32, F32, 64)],  # 16 elements a worker
)
def test_casts(source: DType, result: DType, loop: int) -> None:
    assert codelets.cast_cycles(source, result, 96, 6) == 12 + 6 * (37 + loop)


def test_fill_stores_a_word_a_cycle() -> None:
    assert codelets.fill_cycles(F16, 96, 6) == 6 * (26 + 4)


def test_tables_hold_exactly_the_family() -> None:
    tables = (codelets.UNARY, codelets.BINARY, codelets.TERNARY, codelets.GRADIENTS)
    kinds = {kind for kind, op in OPS.items() if op.family == "elementwise"}
    assert {kind for table in tables for kind in table} == kinds


def test_integers_have_their_own_rate() -> None:
    assert rates((3, 2), (3, 4), (277, 1)).of(I32).cycles == 277


def test_codelets_are_named_as_templates() -> None:
    assert multi_codelet("popops::Fill", F16, 10).name == "popops::Fill<half>"
    assert multi_codelet("popops::UnaryOp1D<exp", F32, 10).name == (
        "popops::UnaryOp1D<exp,float>"
    )
