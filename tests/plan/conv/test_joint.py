"""Weights of a joint plan are at home on the tiles of exactly their split."""

from __future__ import annotations

from dataclasses import replace

from popple.graph import DType, LinearPass
from popple.plan import TileMapping
from popple.plan.conv import Solution, find_linear
from popple.plan.conv.joint import are_weights_home, joint_tiles
from popple.plan.conv.linear import Linear
from popple.plan.layout import LINEAR, Grouped, JointTiles, Layout, permuted
from popple.program import TileVector
from tests.plan.conv.machines import target_of

CHIP = target_of("gc200").chip
SHAPE = (1000, 1000)
VECTOR = TileVector.spread(4_000_000, CHIP.num_tiles, CHIP.num_tiles)


def solution_of(which: LinearPass) -> Solution:
    layer = Linear(1, 8, *SHAPE, DType.F32, DType.F32, DType.F32)
    plan = find_linear(layer, CHIP, 0.6)
    assert plan.is_joint
    return plan.choices[which].best


def weights_on(tiles: JointTiles) -> TileMapping:
    return TileMapping(VECTOR, Layout(Grouped(SHAPE, 0, 8, tiles)))


def test_passes_agree_about_the_split() -> None:
    assert len({joint_tiles(solution_of(which)) for which in LinearPass}) == 1


def test_weights_are_home_on_their_own_split_only() -> None:
    solution = solution_of(LinearPass.INPUT_GRAD)
    tiles = joint_tiles(solution)
    assert are_weights_home(solution, weights_on(tiles))
    # Its text begins with that of the right split.
    longer = replace(tiles, outputs=10 * tiles.outputs + 1)
    assert str(tiles) in str(longer)
    assert not are_weights_home(solution, weights_on(longer))
    assert not are_weights_home(solution, TileMapping(VECTOR, LINEAR))


def test_weights_are_home_whichever_way_round_they_are_read() -> None:
    solution = solution_of(LinearPass.INPUT_GRAD)
    mapping = weights_on(joint_tiles(solution))
    turned = mapping.layout.viewed(permuted(SHAPE, (1, 0)))
    assert are_weights_home(solution, replace(mapping, layout=turned))


def test_weights_nobody_has_laid_out_are_put_there_by_the_forward_pass() -> None:
    assert are_weights_home(solution_of(LinearPass.FORWARD), None)
    assert not are_weights_home(solution_of(LinearPass.INPUT_GRAD), None)
