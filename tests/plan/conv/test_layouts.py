"""Layouts: what is adjacent, through views, and what a copy has to cut."""

from __future__ import annotations

from popple.plan.conv.layouts import (
    Adjacency,
    adjacency_of_axis,
    copy_atom,
    find_adjacency,
    render_layout,
)

BLOCKED = render_layout((64, 128), 1, 16, "out g1")


def test_adjacency_is_read_back() -> None:
    assert find_adjacency(BLOCKED) == adjacency_of_axis((64, 128), 1, 16)
    assert find_adjacency("linear").stride == 1


def test_a_permutation_moves_the_adjacent_dimension() -> None:
    # [64,128] becomes [128,64]: neighbours along the old columns are 64 apart.
    assert find_adjacency(f"{BLOCKED}>permute[64,128:1,0]") == Adjacency(64, 16)


def test_a_slice_changes_the_strides() -> None:
    rows = render_layout((64, 128), 0, 16, "out g1")
    view = f"{rows}>slice[64,128:64,32 dim=1]"
    assert find_adjacency(view) == Adjacency(32, 16)


def test_an_equal_or_longer_run_needs_no_copy() -> None:
    assert copy_atom(BLOCKED, Adjacency(1, 16)) == 0
    assert copy_atom(BLOCKED, Adjacency(1, 8)) == 0
    assert copy_atom("linear", Adjacency(1, 16)) == 0


def test_a_shorter_run_is_copied_piece_by_piece() -> None:
    narrow = render_layout((64, 128), 1, 8, "out g1")
    assert copy_atom(narrow, Adjacency(1, 16)) == 8


def test_a_transposition_is_copied_element_by_element() -> None:
    assert copy_atom(BLOCKED, Adjacency(128, 16)) == 1
