"""Formulas of the small families, with the arithmetic written out."""

from popple.graph import OPS, DType
from popple.plan.codelets.gather import multi_slice_cycles, multi_update_cycles
from popple.plan.codelets.loss import TRANSFORM, loss_cycles
from popple.plan.codelets.random import WORD_CYCLES, random_cycles
from popple.plan.codelets.shape import (
    copy_cycles,
    dynamic_slice_cycles,
    shuffle_cycles,
)
from popple.plan.codelets.sort import compare_cycles, sort_passes
from popple.plan.codelets.update import FLOPS, PASSES, scaled_add_cycles

F16, F32 = DType.F16, DType.F32


def test_copies_move_a_word_a_cycle() -> None:
    assert copy_cycles(10_000, 8) == 288 + 1250
    assert copy_cycles(0, 8) == 0


def test_shuffles_move_an_element_a_cycle_and_a_quarter() -> None:
    assert shuffle_cycles(800, 2) == 288 + 800 // 2 * 5 // 4


def test_dynamic_slice() -> None:
    # 96 halves: 4 words a worker, 2 cycles each.
    assert dynamic_slice_cycles(96, 4, 6) == 25 + 6 * (39 + 24 + 8)


def test_gather_rows() -> None:
    # 3 rows of 8 elements.
    assert multi_slice_cycles(3, 8) == 30 + 3 * (19 + 8)


def test_scatter_rows() -> None:
    # Rows of 8 halves are 4 atoms; rows of 3 halves share one with their neighbour.
    assert multi_update_cycles(2, 8, DType.F16) == 18 + 2 * (12 + 9)
    assert multi_update_cycles(1, 3, DType.F16) == 18 + 12 + 3 * 20
    assert multi_update_cycles(2, 8, DType.F32) == 17 + 2 * (11 + 21)


def test_random_words() -> None:
    assert random_cycles("normal", 100, 4, 6) == 6 + 24 * 6 + 4 * 25
    assert random_cycles("dropout", 100, 4, 6) == 6 + 24 * 6 + 2 * 25


def test_sgd() -> None:
    # 96 floats: 8 words a worker, 3 cycles each.
    ((_, table),) = PASSES["sgd_update"]
    assert scaled_add_cycles(table, F32, 96, 6) == 57 + 6 * (24 + 24)


def test_cross_entropy() -> None:
    # 96 halves: 16 a worker, 9 cycles for two.
    assert loss_cycles("nll_loss", F16, 96, 6) == 9 + 6 * (20 + 72)
    assert loss_cycles("nll_loss_grad", F16, 96, 6) == 9 + 6 * (20 + 72)


def test_a_network_sorts_in_triangular_passes() -> None:
    # 3 levels of 1, 2 and 3 passes over all 8 elements.
    assert list(sort_passes(8, 8)) == [8] * 6


def test_the_largest_need_ever_shorter_passes() -> None:
    # Pairs are sorted, pairs of pairs merged, half of them dropped, until one is left.
    assert list(sort_passes(8, 2)) == [8, 8, 4, 4, 2]
    assert list(sort_passes(8, 1)) == [8, 4, 2]


def test_pairs_are_compared_by_all_workers() -> None:
    # 12 pairs: 2 a worker, 38 + 8 + 11.
    assert compare_cycles(12, True, 6) == 19 + 6 * 57


def test_tables_hold_exactly_their_families() -> None:
    families = {kind: op.family for kind, op in OPS.items()}
    updates = {kind for kind, family in families.items() if family == "update"}
    assert set(PASSES) | {"clear"} == set(FLOPS) == updates
    random = {kind for kind, family in families.items() if family == "random"}
    assert set(WORD_CYCLES) == random
    losses = {kind for kind, family in families.items() if family == "loss"}
    assert {*TRANSFORM, *(f"{kind}_grad" for kind in TRANSFORM)} == losses
