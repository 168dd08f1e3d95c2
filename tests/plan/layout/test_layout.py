"""Layouts answer what rules ask: order, adjacency through views, where parts lie."""

from __future__ import annotations

import pytest

from popple.errors import PlanError
from popple.plan.layout import (
    LINEAR,
    Adjacency,
    ConvTiles,
    Flat,
    Grouped,
    JointTiles,
    Layout,
    Named,
    Unknown,
    adjacency_of_axis,
    permuted,
    repeated,
    sliced,
)

TILES = ConvTiles("out", 1, (1, 4), 1, 2, 8)
BLOCKED = Layout(Grouped((64, 128), 1, 16, TILES))
ROWS = Layout(Grouped((64, 128), 0, 16, TILES))


def test_adjacency_of_the_base() -> None:
    assert BLOCKED.adjacency == adjacency_of_axis((64, 128), 1, 16)
    assert ROWS.adjacency == Adjacency(128, 16)
    assert LINEAR.adjacency.stride == 1


def test_a_permutation_moves_the_adjacent_dimension() -> None:
    # [64,128] becomes [128,64]: neighbours along the old columns are 64 apart.
    turned = BLOCKED.viewed(permuted((64, 128), (1, 0)))
    assert turned.adjacency == Adjacency(64, 16)


@pytest.mark.parametrize("starts", [(0, 96), None])
def test_a_slice_changes_the_strides(starts: tuple[int, int] | None) -> None:
    part = ROWS.viewed(sliced((64, 128), starts, (64, 32)))
    assert part.adjacency == Adjacency(32, 16)


def test_an_index_changes_the_strides_as_a_slice_of_one_does() -> None:
    # [8,4,32] with groups along dimension 0, index 2 of dimension 1: 32 apart.
    layout = Layout(Grouped((8, 4, 32), 0, 8, TILES))
    assert layout.adjacency == Adjacency(128, 8)
    picked = layout.viewed(sliced((8, 4, 32), (0, 2, 0), (8, 1, 32)))
    assert picked.adjacency == Adjacency(32, 8)


def test_one_element_of_every_group_has_no_neighbours() -> None:
    column = BLOCKED.viewed(sliced((64, 128), (0, 3), (64, 1)))
    assert column.adjacency.group == 1


def test_what_is_repeated_inside_moves_neighbours_apart() -> None:
    wide = LINEAR.viewed(repeated((32, 1), (32, 9)))
    assert wide.adjacency.stride == 9


def test_views_of_unknown_index_map_keep_what_is_adjacent() -> None:
    assert BLOCKED.viewed(Unknown("diagonal", (64, 128), (64,))).adjacency == Adjacency(
        1, 16
    )


def test_an_equal_or_longer_run_needs_no_copy() -> None:
    assert BLOCKED.copy_atom(Adjacency(1, 16)) == 0
    assert BLOCKED.copy_atom(Adjacency(1, 8)) == 0
    assert LINEAR.copy_atom(Adjacency(1, 16)) == 0


def test_a_shorter_run_is_copied_piece_by_piece() -> None:
    narrow = Layout(Grouped((64, 128), 1, 8, TILES))
    assert narrow.copy_atom(Adjacency(1, 16)) == 8


def test_a_transposition_is_copied_element_by_element() -> None:
    assert BLOCKED.copy_atom(Adjacency(128, 16)) == 1


def test_groups_of_a_dimension() -> None:
    assert BLOCKED.group_in((64, 128)) == 16
    assert BLOCKED.group_in((64, 8)) == 8
    assert LINEAR.group_in((64, 128)) == 128
    assert ROWS.run_shared_with(BLOCKED) == 1
    assert BLOCKED.run_shared_with(LINEAR) == 16


def test_the_first_tile_does_not_change_the_order() -> None:
    rotated = Layout(Flat(16))
    assert rotated != LINEAR
    assert rotated.is_linear
    assert rotated.first_tile == 16
    assert rotated.is_ordered_as(LINEAR)
    assert rotated.reduced((True, False)).is_ordered_as(LINEAR.reduced((True, False)))
    assert not rotated.is_ordered_as(BLOCKED)


def test_a_reduction_knows_where_it_was_made() -> None:
    sums = BLOCKED.reduced((True, False))
    assert sums.is_reduction_of(BLOCKED)
    assert not sums.is_reduction_of(ROWS)
    assert not BLOCKED.is_reduction_of(BLOCKED)
    shown = sums.viewed(repeated((64, 1), (64, 128)))
    assert shown.is_reduction_of(BLOCKED)
    assert shown.reduced((True, False)).is_reduction_of(BLOCKED)


def test_parts_and_rings_keep_what_they_are_made_of() -> None:
    assert BLOCKED.part(4).whole == BLOCKED
    assert BLOCKED.ring().entry == BLOCKED
    assert BLOCKED.whole is BLOCKED.entry is BLOCKED


def test_the_split_of_a_joint_plan_is_compared_as_a_whole() -> None:
    # As text, "g1i4o2" is found in "g1i4o21", which is another split.
    layout = Layout(Grouped((64, 128), 0, 16, JointTiles(1, 4, 21)))
    assert layout.joint_tiles == JointTiles(1, 4, 21)
    assert layout.joint_tiles != JointTiles(1, 4, 2)
    assert layout.viewed(permuted((64, 128), (1, 0))).joint_tiles is not None
    assert layout.part(2).joint_tiles == layout.ring().joint_tiles
    assert BLOCKED.joint_tiles is None


def test_a_name_is_no_kind_of_order() -> None:
    with pytest.raises(PlanError, match="cannot name"):
        Named("linear")
