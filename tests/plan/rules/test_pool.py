"""Pooling: the split is the cheapest, and windows bring their borders along."""

import numpy as np

from popple.graph import DType
from popple.plan.blocks.pooling import PoolProblem, find_pool_split
from popple.plan.codelets.pool import PoolVertex
from popple.plan.layout import LINEAR, Grouped, Layout, PoolTiles
from popple.plan.opplan import Compute, Move, OpPlan, PlanRequest, TileMapping
from popple.plan.rules.pool import pool_problem
from popple.program import TileVector
from tests.plan.machines import bow, plan
from tests.plan.signatures import f16, make

FIELD, POOLED = f16(2, 64, 32, 32), f16(2, 64, 16, 16)
GRAD = make("max_pool_grad", [POOLED, FIELD], [FIELD], kernel=(3, 3))


def names(made: OpPlan) -> list[str]:
    return [step.name for step in made.steps if isinstance(step, Compute | Move)]


def cycles(vertex: PoolVertex, rows: int, columns: int) -> int:
    sizes = (np.array([rows]), np.array([columns]), np.array([1]))
    return int(vertex.cycles(*sizes, num_workers=6)[0])


def vertex(is_grad: bool = False, step: int = 1) -> PoolVertex:
    return PoolVertex(True, is_grad, num_items=4, vectors=2, cleared=2, step=step)


def test_the_vertex_goes_over_each_row_once_for_every_window_position() -> None:
    # A row of 5 for each worker: 42 to start, 4 + 10 to clear; 4 positions of 23, and
    # a group of 2 with 2 vectors of 3 + 4 + 3 x 4.
    row = 15 + 4 * (23 + 2 + 2 * (3 + 4 + 12))
    assert cycles(vertex(), 6, 5) == 13 + 6 * (42 + 4 + 10 + row)


def test_workers_share_positions_even_within_rows() -> None:
    # 12 positions: 2 a worker, in one row or two.
    assert cycles(vertex(), 1, 12) == cycles(vertex(), 2, 6)
    assert cycles(vertex(), 4, 3) > cycles(vertex(), 1, 12)


def test_a_gradient_takes_longer_and_steps_shorten_it() -> None:
    assert cycles(vertex(is_grad=True), 6, 5) > cycles(vertex(), 6, 5)
    assert cycles(vertex(is_grad=True, step=2), 6, 5) < cycles(vertex(True), 6, 5)


def test_a_gradient_gathers_from_the_windows_that_cover_an_element() -> None:
    problem = pool_problem(PlanRequest(GRAD, (None, None), bow()))
    assert problem.stride == (2, 2)
    # Two of three window rows reach a field row, all three columns do.
    assert problem.num_items == 2 * 3


def test_a_tile_needs_its_windows_and_their_borders() -> None:
    problem = PoolProblem(1, 4, (8,), (8,), (3,), DType.F16)
    split = find_pool_split(problem, bow().chip)
    reach = min(split.positions[-1] + 2, 8)
    assert split.needed_bytes == reach * split.channel_group * split.num_groups * 2


def test_groups_that_suit_are_taken_if_they_cost_little_more() -> None:
    # As PopLibs plans the first pooling of Inception on 1472 tiles.
    problem = PoolProblem(1, 192, (35, 35), (35, 35), (3, 3), DType.F16, group=8)
    split = find_pool_split(problem, bow().chip)
    assert (split.channel_group, split.positions) == (16, (1, 3, 4))


def test_windows_that_stay_apart_make_one_long_row() -> None:
    problem = PoolProblem(2, 64, (16, 16), (32, 32), (2, 2), DType.F16, group=16)
    assert find_pool_split(problem, bow().chip).positions[:2] == (1, 1)


def test_channels_that_lie_together_are_seen() -> None:
    vector = TileVector.spread(FIELD.num_bytes, 64, bow().chip.num_tiles, 2)
    together = TileMapping(
        vector, Layout(Grouped((2, 64, 32, 32), 1, 16, PoolTiles(64)))
    )
    flat = TileMapping(vector, LINEAR)
    signature = make("max_pool", [FIELD], [POOLED], kernel=(2, 2))
    groups = [
        pool_problem(PlanRequest(signature, (given,), bow())).group
        for given in (together, flat, None)
    ]
    assert groups == [16, 1, 16]


def test_the_result_is_whole() -> None:
    made = plan(make("max_pool", [FIELD], [POOLED], kernel=(2, 2)), (None,))
    assert made.outputs[0].bytes_by_tile.total == POOLED.num_bytes
    assert [type(step) for step in made.steps] == [Move, Compute]


def test_gradients_of_maxima_are_first_brought_to_the_forward_result() -> None:
    steps = names(plan(GRAD, (None, None)))
    assert steps == ["gradient/exchange", "windows/exchange", "max_pool_grad"]


def test_channels_one_by_one_are_put_in_order() -> None:
    vector = TileVector.spread(FIELD.num_bytes, 64, bow().chip.num_tiles, 2)
    signature = make("max_pool", [FIELD], [POOLED], kernel=(3, 3))
    made = plan(signature, (TileMapping(vector, LINEAR),))
    assert "windows/order" in names(made)


def test_a_window_as_large_as_the_field_is_a_reduction() -> None:
    made = plan(make("avg_pool", [FIELD], [f16(2, 64, 1, 1)], kernel=(32, 32)))
    assert "reduce stages" in dict(made.choice)
    back = make("avg_pool_grad", [f16(2, 64, 1, 1)], [FIELD], kernel=(32, 32))
    assert names(plan(back)) == ["mul", "gradient/multicast", "broadcast"]
