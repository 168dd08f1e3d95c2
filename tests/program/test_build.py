from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.errors import ProgramError
from popple.program import (
    Codelet,
    PlacedVertex,
    TileVector,
    VertexGroup,
    linear_mapping,
    vertex_groups,
)
from popple.units import ceil_div

A, B = Codelet("a"), Codelet("b")


@pytest.mark.parametrize(
    ("num_elements", "tiles_used"),
    [(900 * 600, 1468), (600 * 300, 1452), (300 * 200, 1429), (40 * 50, 59), (50, 1)],
)
def test_tutorial_tensors_use_the_known_numbers_of_tiles(
    num_elements: int, tiles_used: int
) -> None:
    mapping = linear_mapping(num_elements, 4, 1472)
    assert mapping.num_nonzero == tiles_used
    assert mapping.total == 4 * num_elements


def test_a_small_mapping_by_hand() -> None:
    # 70 floats are 35 grains of 2. A tile gets at least 16 grains, so 2 tiles at most:
    # 18 grains each, tile 0 grains [0, 17), tile 1 [17, 35).
    expected = TileVector(((1, 17 * 8), (1, 18 * 8), (2, 0)))
    assert linear_mapping(70, 4, 4) == expected


def test_the_last_grain_may_be_short() -> None:
    # 5 halves are two grains of 4 of which the second holds one element.
    vector = linear_mapping(5, 2, 2, min_elements_per_tile=4)
    assert vector == TileVector(((1, 8), (1, 2)))


def test_grain_and_minimum_can_be_chosen() -> None:
    assert linear_mapping(6, 4, 3, grain_elements=1, min_elements_per_tile=1) == (
        TileVector.constant(3, 8)
    )


def test_no_elements_need_no_tile() -> None:
    assert linear_mapping(0, 4, 3) == TileVector.zeros(3)


@given(st.integers(1, 5000), st.sampled_from([1, 2, 4]), st.integers(1, 50))
def test_mappings_are_complete_and_in_whole_grains(
    n: int, size: int, tiles: int
) -> None:
    mapping = linear_mapping(n, size, tiles)
    values = mapping.to_array().tolist()
    used = mapping.num_nonzero
    assert sum(values) == n * size
    assert all(values[:used])
    assert all(value % 8 == 0 for value in values[: used - 1])
    # Even: shares differ by one grain, the last by less than one more.
    assert max(values) - min(values[:used]) <= 8 + 8
    assert used <= ceil_div(n * size, 8)


@pytest.mark.parametrize("bad", [(-1, 4, 4), (4, 0, 4), (4, 4, 0)])
def test_senseless_tensors_are_refused(bad: tuple[int, int, int]) -> None:
    with pytest.raises(ProgramError, match="cannot map"):
        linear_mapping(*bad)


def test_equal_vertices_make_one_group() -> None:
    placed = [PlacedVertex(A, tile, 20, flops=3) for tile in (0, 1, 1, 2)]
    counts = TileVector(((1, 1), (1, 2), (1, 1), (1, 0)))
    (group,) = vertex_groups(placed, 4)
    assert group.count_by_tile == counts
    assert group.cycles_by_tile == TileVector(((3, 20), (1, 0)))
    assert group.flops_by_tile == TileVector(((3, 3), (1, 0)))


def test_vertices_may_take_different_times_on_different_tiles() -> None:
    (group,) = vertex_groups([PlacedVertex(A, 0, 5), PlacedVertex(A, 1, 7)], 2)
    assert group == VertexGroup(
        A, TileVector.constant(2, 1), TileVector(((1, 5), (1, 7)))
    )


def test_edges_and_codelets_split_groups() -> None:
    placed = [PlacedVertex(A, 0, 5), PlacedVertex(B, 1, 5), PlacedVertex(A, 2, 5, 0, 2)]
    groups = vertex_groups(placed, 3)
    assert [(g.codelet, g.num_edges) for g in groups] == [(A, 1), (B, 1), (A, 2)]


@given(
    st.lists(st.tuples(st.sampled_from([A, B]), st.integers(0, 2), st.integers(1, 3)))
)
def test_the_order_on_every_tile_is_kept(rows: list[tuple[Codelet, int, int]]) -> None:
    groups = vertex_groups([PlacedVertex(*row) for row in rows], 3)
    for tile in range(3):
        given_order = [(c, cycles) for c, t, cycles in rows if t == tile]
        found = [
            (group.codelet, group.cycles_by_tile[tile])
            for group in groups
            for _ in range(group.count_by_tile[tile])
        ]
        assert found == given_order


def test_a_vertex_on_a_tile_that_does_not_exist_is_refused() -> None:
    with pytest.raises(
        ProgramError, match="a vertex of a is on tile 4, but there are 4"
    ):
        vertex_groups([PlacedVertex(A, 4, 1)], 4)
