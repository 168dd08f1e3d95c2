from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.errors import ProgramError
from popple.program import (
    TileSum,
    TileVector,
    add_all,
    aligned_runs,
    chip_maxima,
    chip_parts,
    chip_totals,
    combine,
    maximum_of,
)

VALUES = st.lists(st.integers(-3, 3), min_size=6, max_size=6)
ROWS = st.lists(VALUES, min_size=1, max_size=4)


def vector_of(values: list[int]) -> TileVector:
    return TileVector.from_array(np.array(values, dtype=np.int64))


@given(VALUES)
def test_arrays_and_vectors_are_the_same_numbers(values: list[int]) -> None:
    vector = vector_of(values)
    assert vector.to_array().tolist() == values
    assert [vector[tile] for tile in range(6)] == values
    assert TileVector.of((1, value) for value in values) == vector


@given(VALUES)
def test_summaries_are_those_of_the_array(values: list[int]) -> None:
    vector = vector_of(values)
    assert (len(vector), vector.total, vector.maximum) == (6, sum(values), max(values))
    assert vector.peak_tile == values.index(max(values))
    assert vector.num_nonzero == sum(value != 0 for value in values)
    assert vector.presence().to_array().tolist() == [int(v != 0) for v in values]
    assert vector.is_zero == (not any(values))


@given(ROWS)
def test_combining_goes_tile_by_tile(rows: list[list[int]]) -> None:
    vectors = [vector_of(row) for row in rows]
    array = np.array(rows)
    assert combine(sum, vectors).to_array().tolist() == array.sum(axis=0).tolist()
    assert maximum_of(vectors).to_array().tolist() == array.max(axis=0).tolist()
    assert add_all(vectors, 6).to_array().tolist() == array.sum(axis=0).tolist()


@given(ROWS)
def test_aligned_runs_cover_every_tile_of_every_vector(rows: list[list[int]]) -> None:
    vectors = [vector_of(row) for row in rows]
    columns: list[list[int]] = []
    for count, *values in aligned_runs(vectors):
        columns += [values] * count
    assert np.array(columns).T.tolist() == rows


def test_equal_vectors_and_single_runs_need_no_refinement() -> None:
    vector = TileVector(((2, 5), (1, 7)))
    assert list(aligned_runs([vector, vector])) == [(2, 5, 5), (1, 7, 7)]
    singles = [TileVector.constant(3, 1), TileVector.constant(3, 2)]
    assert list(aligned_runs(singles)) == [(3, 1, 2)]


@pytest.mark.parametrize("values", [[1], [1, 2]])
def test_vectors_of_different_sizes_do_not_combine(values: list[int]) -> None:
    with pytest.raises(ProgramError, match=r"over \[\d, 3\] tiles do not combine"):
        combine(sum, [vector_of(values), TileVector.constant(3, 1)])


def test_nothing_does_not_combine() -> None:
    with pytest.raises(ProgramError, match="no vector"):
        combine(sum, [])
    assert add_all([], 3) == TileVector.zeros(3)


@given(ROWS, st.integers(-2, 2))
def test_a_running_sum_scales_what_it_adds(rows: list[list[int]], factor: int) -> None:
    total = TileSum(6)
    for row in rows:
        total.add(vector_of(row), factor)
    expected = factor * np.array(rows).sum(axis=0)
    assert total.to_vector().to_array().tolist() == expected.tolist()


def test_a_running_sum_takes_ranges_and_refuses_tiles_past_the_end() -> None:
    total = TileSum(4)
    total.add_range(1, 3, 5)
    total.add_range(2, 2, 9)  # empty
    assert total.to_vector() == TileVector(((1, 0), (2, 5), (1, 0)))
    with pytest.raises(ProgramError, match="tile 5 is past 4 tiles"):
        total.add_range(3, 5, 1)


@given(st.integers(0, 300), st.integers(1, 9), st.integers(1, 9), st.integers(1, 5))
def test_spreading_loses_nothing(total: int, used: int, tiles: int, grain: int) -> None:
    vector = TileVector.spread(total, used, tiles, grain)
    assert vector.total == total
    assert len(vector) == tiles
    assert vector.num_nonzero <= used
    # Grains are dealt evenly: no tile has more than one grain more than another.
    busy = [value for value in vector.to_array().tolist() if value]
    assert not busy or max(busy) - min(busy) < 2 * grain


def test_spreading_puts_the_broken_grain_last() -> None:
    # 10 bytes in grains of 4 are 3 grains over 2 tiles: 8 bytes and 4 - 2 = 2.
    assert TileVector.spread(10, 2, 3, 4) == TileVector(((1, 8), (1, 2), (1, 0)))


@given(VALUES, st.integers(-8, 8))
def test_rotation_moves_values_round(values: list[int], offset: int) -> None:
    rotated = vector_of(values).rotated(offset)
    assert rotated.to_array().tolist() == np.roll(values, offset).tolist()


@given(VALUES, st.integers(0, 6), st.integers(0, 6))
def test_parts_are_slices(values: list[int], start: int, stop: int) -> None:
    part = vector_of(values).part(start, stop)
    assert part.to_array().tolist() == values[start:stop]


def test_shifting_keeps_within_the_space() -> None:
    vector = TileVector(((1, 3),))
    assert vector.shifted(1, 3) == TileVector(((1, 0), (1, 3), (1, 0)))
    with pytest.raises(ProgramError, match="1 tiles from 3 on exceed 3"):
        vector.shifted(3, 3)


@pytest.mark.parametrize("runs", [((0, 1),), ((1, 2), (1, 2)), ((-1, 2),)])
def test_runs_must_be_normal(runs: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ProgramError, match="normal form"):
        TileVector(runs)


def test_a_tile_that_does_not_exist_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        TileVector.constant(2, 1)[2]


def test_a_vector_without_tiles_is_empty() -> None:
    empty = TileVector.from_array(np.array([], dtype=np.int64))
    assert (len(empty), empty.maximum, empty.peak_tile) == (0, 0, 0)
    assert empty.rotated(3) == empty


@given(st.lists(st.integers(0, 4), min_size=6, max_size=6))
def test_chips_cut_vectors(values: list[int]) -> None:
    vector = vector_of(values)
    by_chip = np.array(values).reshape(3, 2)
    assert chip_totals(vector, 3, 2) == tuple(by_chip.sum(axis=1).tolist())
    assert chip_maxima(vector, 3, 2) == tuple(by_chip.max(axis=1).tolist())
    parts = chip_parts(vector, 3, 2)
    assert parts == tuple(vector_of(chip.tolist()).runs for chip in by_chip)
    assert chip_totals(vector, 1, 6) == (sum(values),)
    assert chip_maxima(vector, 1, 6) == (max(values),)


def test_a_run_over_several_chips_is_cut_at_each() -> None:
    # 5 tiles of value 7 from tile 1 on, 2 tiles a chip: 1 + 2 + 2 tiles.
    vector = TileVector(((1, 0), (5, 7)))
    assert chip_parts(vector, 3, 2) == (((1, 0), (1, 7)), ((2, 7),), ((2, 7),))
