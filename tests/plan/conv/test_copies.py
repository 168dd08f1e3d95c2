"""What the planner expects of copies around a plan, and how operands are regrouped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from popple.graph import DType, TensorType
from popple.plan.conv.copies import estimate_copies
from popple.plan.conv.methods import find_methods
from popple.plan.conv.problem import ConvProblem, Purpose, matmul_problem
from popple.plan.conv.regroup import find_blocks
from popple.plan.conv.setting import Setting
from popple.plan.conv.splits import Serial
from popple.plan.conv.transforms import find_forms
from popple.plan.conv.vertices import transpose_cycles
from tests.plan.conv.machines import target_of

CHIP = target_of("gc200").chip


def product(rows: int, inner: int, columns: int) -> ConvProblem:
    return matmul_problem(1, (rows, inner, columns), DType.F16, DType.F32, DType.F16)


def copies_of(problem: ConvProblem, is_swapped: bool, out_group: int = 16) -> int:
    form = next(f for f in find_forms(problem) if f.is_swapped is is_swapped)
    method = next(
        m
        for m in find_methods(form.problem, CHIP)
        if m.name.startswith("amp-1x1") and m.out_group == out_group
    )
    setting = Setting(form, method, CHIP, Serial())
    return int(estimate_copies(np.array([100]), setting).cycles[0])


def test_a_swapped_product_of_whole_groups_lies_right() -> None:
    assert copies_of(product(64, 64, 64), is_swapped=True) == 0
    assert copies_of(product(64, 64, 64), is_swapped=False) > 0


def test_channels_that_fill_no_group_are_padded_in_a_copy() -> None:
    # 1000 x 16 and 1008 x 16 halves through 100 tiles: 1008 * (16 + 16) / 100 = 323
    # elements, 646 bytes; 4 bytes a cycle, then 5/4 of a cycle for each 2 bytes.
    cycles = copies_of(product(16, 1000, 16), is_swapped=True)
    assert cycles == pytest.approx(646 / 4 + 646 * 5 / 8, abs=1)


def test_narrow_groups_of_results_are_regrouped_where_they_lie() -> None:
    # 64 x 64 halves on 100 tiles: 41 each, 82 bytes, 8 a cycle, a quarter overhead.
    cycles = copies_of(product(64, 64, 64), is_swapped=True, out_group=8)
    assert cycles == pytest.approx(82 * 5 / 4 / 8, abs=1)


def test_operands_of_a_weight_gradient_are_always_copied() -> None:
    problem = replace(product(64, 64, 64), purpose=Purpose.WEIGHT_GRAD)
    assert copies_of(problem, is_swapped=True) > 0


def test_blocks_are_cut_until_they_occupy_the_tiles() -> None:
    tensor = TensorType(DType.F16, (256, 512))
    blocks = find_blocks(tensor, 16, 16, CHIP)
    assert blocks is not None
    # 512 blocks of 16 x 16 are 1024 of half the size, 2048 would be too many.
    assert (blocks.rows, blocks.columns) == (16, 8)
    assert blocks.bytes_by_tile.total == tensor.num_bytes


def test_groups_that_fill_no_words_cannot_be_transposed() -> None:
    tensor = TensorType(DType.F16, (100, 50))
    assert find_blocks(tensor, 50, 16, CHIP) is None
    assert find_blocks(TensorType(DType.F32, (100, 50)), 50, 8, CHIP) is not None


@pytest.mark.parametrize(
    ("rows", "columns", "num_blocks", "size", "worker"),
    [
        (16, 16, 6, 2, 29 + 18 + 4 * (12 + 8)),
        (4, 4, 1, 2, 29),
        (8, 4, 7, 2, 27 + 2 * 35),
        (4, 4, 1, 4, 27 + 11 + 2 * 9),
    ],
)
def test_transposition_takes_the_longest_worker(
    rows: int, columns: int, num_blocks: int, size: int, worker: int
) -> None:
    assert transpose_cycles(rows, columns, num_blocks, size) == 7 + 6 * worker
