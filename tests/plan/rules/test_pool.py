"""Pooling: the split is the cheapest, and windows bring their borders along."""

import numpy as np

from popple.graph import DType
from popple.plan.codelets.pool import pool_cycles
from popple.plan.opplan import Compute, Move
from popple.plan.pooling import PoolProblem, find_pool_split
from popple.plan.rules.pool import pool_problem
from tests.plan.machines import bow, plan
from tests.plan.signatures import f16, make

FIELD, POOLED = f16(2, 64, 32, 32), f16(2, 64, 16, 16)


def cycles(rows: int, columns: int, *, is_grad: bool = False) -> int:
    counted = pool_cycles(
        np.array([rows]),
        np.array([columns]),
        np.array([1]),
        num_items=4,
        vectors=2,
        is_max=True,
        is_grad=is_grad,
        num_workers=6,
    )
    return int(counted[0])


def test_the_vertex_goes_over_each_row_once_for_every_window_position() -> None:
    # A row of 5 for each worker: 40 to start, 4 + 10 to clear; 4 positions of 23, and
    # a group of 6 with 2 vectors of 3 + 4 + 3 x 4.
    row = 15 + 4 * (23 + 6 + 2 * (3 + 4 + 12))
    assert cycles(6, 5) == 13 + 6 * (40 + 4 + 10 + row)


def test_few_rows_are_cut() -> None:
    assert cycles(1, 60) < cycles(6, 60)


def test_a_gradient_takes_longer() -> None:
    assert cycles(6, 5, is_grad=True) > cycles(6, 5)


def test_a_gradient_gathers_from_the_windows_that_cover_an_element() -> None:
    signature = make("max_pool_grad", [POOLED, FIELD], [FIELD], kernel=(3, 3))
    problem = pool_problem(signature)
    assert problem.stride == (2, 2)
    # Two of three window rows reach a field row, all three columns do.
    assert problem.num_items == 2 * 3


def test_a_tile_needs_its_windows_and_their_borders() -> None:
    problem = PoolProblem(1, 4, (8,), (8,), (3,), DType.F16)
    split = find_pool_split(problem, bow().chip)
    reach = min(split.positions[-1] + 2, 8)
    assert split.needed_bytes == reach * split.channel_group * split.num_groups * 2


def test_the_result_is_whole() -> None:
    made = plan(make("max_pool", [FIELD], [POOLED], kernel=(2, 2)))
    assert made.outputs[0].bytes_by_tile.total == POOLED.num_bytes
    assert [type(step) for step in made.steps] == [Move, Compute]
