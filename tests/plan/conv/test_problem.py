"""The normal form: sizes, products counted, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.errors import PlanError
from popple.graph import DType
from popple.plan.conv.problem import ConvProblem, matmul_problem
from popple.plan.conv.transforms import expand, find_forms, flatten, spread_out


def problem_of(field: int = 8, kernel: int = 3, padding: int = 1) -> ConvProblem:
    return ConvProblem(
        batch=2,
        groups=1,
        field=(field, field),
        kernel=(kernel, kernel),
        in_channels=4,
        out_channels=5,
        stride=(1, 1),
        padding=(2 * padding, 2 * padding),
        dilation=(1, 1),
        dtype=DType.F16,
        partials=DType.F32,
        output=DType.F16,
    )


def test_products_with_padding_are_not_counted() -> None:
    # 8 outputs and 3 kernel positions meet in 24 pairs; the two outermost miss.
    assert problem_of().num_macs == 2 * 22 * 22 * 4 * 5
    assert problem_of(padding=0).num_macs == 2 * (6 * 3) ** 2 * 4 * 5


def test_sizes() -> None:
    problem = problem_of()
    assert problem.out_field == (8, 8)
    assert problem.num_inputs == 2 * 4 * 64
    assert problem.num_weights == 4 * 5 * 9
    assert problem.num_outputs == 2 * 5 * 64


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 50))
def test_a_matmul_has_its_products(rows: int, inner: int, columns: int) -> None:
    f16 = DType.F16
    problem = matmul_problem(3, (rows, inner, columns), f16, f16, f16)
    assert problem.is_matmul
    assert problem.num_macs == 3 * rows * inner * columns


def test_expanding_the_kernel_gives_a_matmul() -> None:
    expanded = expand(problem_of(padding=0), (0, 1))
    assert expanded.is_matmul
    assert expanded.in_channels == 4 * 9
    assert flatten(expanded).field == (2 * 36,)
    assert expanded.num_macs == problem_of(padding=0).num_macs


def test_a_kernel_over_one_position_becomes_output_channels() -> None:
    f16 = DType.F16
    problem = ConvProblem(
        *(2, 1, (6, 1), (3, 5), 4, 7),
        stride=(1, 1),
        padding=(0, 8),
        dilation=(1, 1),
        dtype=f16,
        partials=f16,
        output=f16,
    )
    assert problem.out_field == (4, 5)
    spread = spread_out(problem, (1,))
    assert (spread.kernel, spread.out_field) == ((3, 1), (4, 1))
    assert spread.out_channels == 7 * 5
    assert spread.num_macs == problem.num_macs
    names = [form.name for form in find_forms(problem)]
    assert "spread" in names


def test_swapping_exchanges_rows_and_output_channels() -> None:
    f16 = DType.F16
    # Products try exchanged operands first, and take them if both cost the same.
    swapped, plain = find_forms(matmul_problem(2, (7, 8, 9), f16, f16, f16))
    assert (plain.problem.field, plain.problem.out_channels) == ((7,), 9)
    assert (swapped.problem.field, swapped.problem.out_channels) == ((9,), 7)
    assert swapped.is_swapped


def test_narrow_groups_are_combined() -> None:
    narrow = replace(problem_of(), groups=32, in_channels=1, out_channels=1)
    names = [form.name for form in find_forms(narrow)]
    assert "combine 16" in names


@pytest.mark.parametrize(
    "change",
    [
        {"batch": 0},
        {"in_channels": 0},
        {"kernel": (9, 9), "padding": (0, 0)},
        {"stride": (1,)},
        {"dilation": (0, 1)},
    ],
)
def test_nonsense_is_refused(change: dict[str, int]) -> None:
    with pytest.raises(PlanError):
        replace(problem_of(), **change)
