"""Tiles dealt to convolutions that run side by side."""

from __future__ import annotations

from itertools import pairwise

from popple.graph import DType
from popple.plan.conv.problem import matmul_problem
from popple.plan.conv.sharing import Rival, SharingOptions, share_tiles
from tests.plan.conv.machines import target_of

CHIP = target_of("gc200").chip


def rival(rows: int) -> Rival:
    shape = (rows, 256, 256)
    problem = matmul_problem(1, shape, DType.F16, DType.F32, DType.F16)
    return Rival(problem, 0.6)


def test_shares_are_disjoint_and_fill_the_chip() -> None:
    shares = share_tiles([rival(64), rival(4096), rival(256)], CHIP)
    spans = sorted((s.first_tile, s.num_tiles) for s in shares)
    assert spans[0][0] == 0
    assert all(a + n == b for (a, n), (b, _) in pairwise(spans))
    assert sum(spans[-1]) == CHIP.num_tiles


def test_the_largest_has_most_tiles_and_sets_the_pace() -> None:
    small, large, middle = share_tiles([rival(64), rival(4096), rival(256)], CHIP)
    assert large.num_tiles > middle.num_tiles
    assert large.reference == ()
    assert small.num_tiles >= 1
    plan = rival(4096).plan_on(CHIP, large.num_tiles)
    assert small.reference == plan.cost.by_cause


def test_the_largest_gives_up_at_most_a_tenth_for_each_other() -> None:
    _, large = share_tiles([rival(64), rival(4096)], CHIP)
    best = rival(4096).plan_on(CHIP, CHIP.num_tiles - 50).cycles
    assert rival(4096).plan_on(CHIP, large.num_tiles).cycles <= 1.1 * best


def test_programs_may_reserve_more_and_wait_longer() -> None:
    rivals = [rival(64), rival(4096)]
    _, usual = share_tiles(rivals, CHIP)
    _, patient = share_tiles(rivals, CHIP, SharingOptions(cycle_back_off=1.0))
    _, generous = share_tiles(rivals, CHIP, SharingOptions(reserved_tiles=1000))
    assert patient.num_tiles < usual.num_tiles
    # No more than half of the tiles are reserved where two share them.
    assert generous.num_tiles <= CHIP.num_tiles // 2


def test_a_reference_is_exceeded_as_little_as_possible() -> None:
    free = rival(64).plan_on(CHIP, 200)
    no_sums = (10**6, 10**6, 0, 0, 10**6, 10**6)
    bound = rival(64).plan_on(CHIP, 200, no_sums)
    assert bound.cost.excess(no_sums) == 0
    assert bound.cycles >= free.cycles
