"""Decompositions and triangular systems: work in blocks, as the library has it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from popple.graph import Notes
from popple.plan.codelets.solve import (
    cholesky_cycles,
    inverse_cycles,
    substitution_cycles,
)
from popple.plan.opplan import Compute, Loop, OpPlan, PlanStep
from tests.plan.machines import plan
from tests.plan.signatures import f16, f32, make


def decomposed(size: int, block: int, *, is_upper: bool = False) -> OpPlan:
    kind = f32(2, size, size)
    signature = make("cholesky", [kind], [kind], is_upper=is_upper)
    return plan(replace(signature, notes=Notes(block_size=block)), (None,))


def solved(size: int, width: int, block: int, *, is_unit: bool = True) -> OpPlan:
    given = f32(1, size, width)
    operands = [f32(1, size, size), given]
    signature = make("triangular_solve", operands, [given], is_unit=is_unit)
    return plan(replace(signature, notes=Notes(block_size=block)), (None, None))


def computed(steps: tuple[PlanStep, ...], name: str) -> list[Compute]:
    return [s for s in steps if isinstance(s, Compute) and s.name == name]


def loops(found: OpPlan) -> list[int]:
    return [step.count for step in found.steps if isinstance(step, Loop)]


def test_vertices_take_what_their_loops_take() -> None:
    # 3 rows, 6 elements of the triangle, 4 products; 3 pairs; see the sources named.
    assert cholesky_cycles(3) == 1 + 3 * 11 + 6 * 18 + 4 * 5
    assert inverse_cycles(3) == 28 + 3 * 63 + 3 * 17 + 4 * 6
    assert substitution_cycles(3) == 34 + 3 * 4 + 3 * 6 + 3 * 25 + 7


def test_each_block_is_decomposed_and_all_but_the_last_inverted() -> None:
    found = decomposed(64, 16)
    assert len(computed(found.steps, "decompose")) == 4
    assert len(computed(found.steps, "invert")) == 3
    (group,) = computed(found.steps, "decompose")[0].vertices
    assert group.count_by_tile.total == 2  # one worker for each matrix
    assert group.cycles_by_tile.maximum == cholesky_cycles(16)


def gathered(found: OpPlan) -> list[int]:
    return [t.bytes_by_tile.maximum for t in found.temporaries if t.is_gathered]


def test_a_block_is_gathered_word_by_word() -> None:
    # 16 x 16 floats, in place: nothing else is held for the one block.
    assert gathered(decomposed(16, 16)) == [1024]
    # The block and its right-hand side go to one tile, for the substitution.
    assert gathered(solved(64, 1, 64)) == [64 * 64 * 4 + 64 * 4]


def test_single_halves_of_columns_are_not_copied_by_words() -> None:
    kind = f16(1, 16, 16)
    signature = make("cholesky", [kind], [kind], is_upper=True)
    found = plan(replace(signature, notes=Notes(block_size=16)), (None,))
    assert gathered(found) == []


def test_one_block_needs_no_products() -> None:
    assert not computed(decomposed(16, 64).steps, "invert")


def test_halves_of_columns_are_merged_row_by_row() -> None:
    kind = f16(1, 16, 16)
    upper = plan(make("cholesky", [kind], [kind], is_upper=True), (None,))
    lower = plan(make("cholesky", [kind], [kind], is_upper=False), (None,))
    assert loops(upper) == [15]
    assert loops(lower) == []


def test_halves_are_solved_in_turn() -> None:
    # 256 rows: 4 systems of 128, each 4 of 64; products of halves for both columns.
    assert loops(solved(256, 256, 64)) == [2, 8, 16]


def test_rows_are_padded_to_blocks_that_halve() -> None:
    assert loops(solved(130, 256, 64)) == loops(solved(256, 256, 64))


def test_a_single_column_is_one_workers_work() -> None:
    found = solved(64, 1, 64)
    (loop,) = [step for step in found.steps if isinstance(step, Loop)]
    (vertex,) = [step for step in loop.steps if isinstance(step, Compute)]
    assert vertex.vertices[0].cycles_by_tile.maximum == substitution_cycles(64)


@pytest.mark.parametrize("is_unit", [False, True])
def test_a_diagonal_that_is_not_one_is_divided_out(is_unit: bool) -> None:
    found = solved(8, 8, 8, is_unit=is_unit)
    assert len(computed(found.steps, "div")) == (0 if is_unit else 2)


@pytest.mark.parametrize("block", [1, 7, 64])
def test_results_are_whole(block: int) -> None:
    (mapping,) = solved(20, 3, block).outputs
    assert mapping.bytes_by_tile.total == 20 * 3 * 4
    (mapping,) = decomposed(20, block).outputs
    assert mapping.bytes_by_tile.total == 2 * 20 * 20 * 4
