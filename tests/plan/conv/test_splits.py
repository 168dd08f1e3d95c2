"""Splits: nothing is lost, no tile is used twice, few candidates suffice."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.graph import DType
from popple.plan.conv.cost import estimate_costs, reduction_stages
from popple.plan.conv.methods import find_methods
from popple.plan.conv.problem import matmul_problem
from popple.plan.conv.search import serial_parts
from popple.plan.conv.setting import Setting
from popple.plan.conv.splits import Serial, distinct_splits, find_candidates, thin
from popple.plan.conv.transforms import Form
from tests.plan.conv.machines import target_of

F16 = DType.F16


@given(st.integers(1, 5000), st.integers(1, 2000))
def test_distinct_splits_differ_in_their_largest_part(size: int, limit: int) -> None:
    splits = distinct_splits(size, limit).tolist()
    parts = [math.ceil(size / split) for split in splits]
    assert splits[0] == 1
    assert splits[-1] <= limit
    assert len(set(parts)) == len(parts)


def test_thin_keeps_the_ends() -> None:
    values = np.arange(1, 101)
    kept = thin(values, 7)
    assert (kept[0], kept[-1], len(kept)) == (1, 100, 7)


@pytest.mark.parametrize("num_tiles", [4, 1472, 14720])
@pytest.mark.parametrize("shape", [(1, 1, 1), (4096, 4096, 1024), (7, 100_000, 3)])
def test_shares_cover_the_problem(num_tiles: int, shape: tuple[int, int, int]) -> None:
    problem = matmul_problem(5, shape, F16, F16, F16)
    chip = replace(target_of("bow").chip, num_tiles=num_tiles)
    method = find_methods(problem, chip)[0]
    found = find_candidates(problem, method, num_tiles, Serial())
    assert 0 < len(found.num_used) <= 3000
    assert found.num_used.max() <= num_tiles
    outputs = found.partials * found.num_used // found.num_summed
    assert (outputs >= problem.num_outputs).all()
    assert (found.inputs * found.num_used >= problem.num_inputs).all()


@given(st.integers(1, 20_000))
def test_reduction_stages_add_up_everything(num_summed: int) -> None:
    depths = [int(d[0]) for d in reduction_stages(np.array([num_summed]))]
    assert math.prod(depths) >= num_summed
    used = sum(depth > 1 for depth in depths)
    # One stage below 16 partials, two from 16, three from 125.
    wanted = 1 + (num_summed >= 16) + (num_summed >= 125)
    assert used == (wanted if num_summed > 1 else 0)


def test_serial_parts_are_equal() -> None:
    # Divisors of 1000 of which each part has 16 channels or more: 1000 / 16 is 62.5.
    assert serial_parts(1000, 16) == [2, 4, 5, 8, 10, 20, 25, 40, 50]
    assert serial_parts(16, 16) == []
    assert serial_parts(97, 1) == [97]


def test_a_chosen_split_is_the_candidate_in_plain_numbers() -> None:
    problem = matmul_problem(1, (100, 300, 500), F16, DType.F32, F16)
    chip = target_of("bow").chip
    method = find_methods(problem, chip)[0]
    setting = Setting(Form("", problem), method, chip, Serial())
    candidates = find_candidates(problem, method, chip.num_tiles, Serial())
    costs = estimate_costs(candidates, setting)
    at = int(costs.total.argmin())
    split, cost = candidates.at(at), costs.at(at)
    assert split.num_used == candidates.num_used[at]
    assert split.num_summed == candidates.num_summed[at]
    assert cost.total == costs.total[at]
    assert cost.by_cause == tuple(costs.by_cause[:, at].tolist())
    reference = tuple(cycles // 2 for cycles in cost.by_cause)
    assert cost.excess(reference) == costs.excess(reference)[at]
    assert cost.excess(()) == 0
    assert math.prod(cost.stages) >= split.num_summed
    # Numbers of NumPy would make equal solutions differ in how they print and hash.
    assert {type(number) for number in (split.inputs, *split.field.shares)} == {int}
