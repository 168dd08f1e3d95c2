"""Lists of vertices: ranges by position of the kernel, and pointers to groups."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.plan.conv.lists import (
    Listing,
    amp_1x1_lists,
    no_lists,
    positional_lists,
    slic_lists,
    vmac_lists,
)
from popple.plan.conv.vertices import TileWork
from tests.plan.conv.machines import plan_conv, target_of

LISTING = Listing(num_workers=6, pointer_bytes=4)


def work_of(
    rows: int,
    columns: int,
    kernel: tuple[int, int] = (1, 1),
    in_groups: int = 1,
    out_groups: int = 1,
    groups: int = 1,
) -> TileWork:
    numbers = (groups, rows, columns, *kernel, in_groups, out_groups)
    return TileWork(*(np.array([number], dtype=np.int64) for number in numbers))


def num_parts(rows: int, columns: int, num_workers: int) -> int:
    """Pairs of a row and a worker that has elements of it, element by element."""
    elements = range(rows * columns)
    begins = [worker * len(elements) // num_workers for worker in range(num_workers)]
    found = {(e // columns, bisect_right(begins, e)) for e in elements}
    return len(found)


@given(st.integers(1, 30), st.integers(1, 30), st.sampled_from([1, 4, 6]))
def test_ranges_are_the_parts_of_rows_that_workers_get(
    rows: int, columns: int, num_workers: int
) -> None:
    listing = Listing(num_workers, 4)
    found = listing.ranges(work_of(rows, columns))
    assert found[0] == num_parts(rows, columns, num_workers)


def test_one_position_has_a_range_for_each_worker() -> None:
    work = work_of(8, 14, in_groups=2, out_groups=3)
    # 6 bytes for each of 6 workers; pointers to 2 inputs, 3 outputs, 6 pairs' weights.
    assert amp_1x1_lists(work, LISTING)[0] == 36 + 4 * (2 + 3 + 6)


def test_every_position_of_a_kernel_has_lists_of_its_own() -> None:
    # 8 rows for 6 workers: bounds after 18, 37, 56, 74 and 93 elements, of which that
    # at 56 is between rows, so 12 parts; 3 pointers.
    work = work_of(8, 14, kernel=(3, 3))
    assert positional_lists(work, LISTING)[0] == 9 * (24 + 6 * 12) + 12
    # Two rows of the kernel at once are one position, the third is padded.
    assert positional_lists(work, LISTING, 2)[0] == 6 * (24 + 6 * 12) + 12


def test_slic_takes_four_columns_at_once_and_points_to_their_weights() -> None:
    work = work_of(6, 14, kernel=(3, 5), groups=2)
    assert slic_lists(work, LISTING)[0] == 6 * (24 + 6 * 6) + 4 * 2 * (2 + 6)


def test_vmac_lists_every_element_by_rows_of_the_kernel() -> None:
    work = work_of(7, 7, kernel=(3, 3))
    assert vmac_lists(work, LISTING)[0] == 24 + 8 * 3 * 49 + 12


def test_a_vertex_without_lists_has_none() -> None:
    assert no_lists(work_of(3, 3))[0] == 0


@pytest.mark.parametrize(("name", "num_bytes"), [("gc2", 2), ("gc200", 4), ("bow", 4)])
def test_pointers_reach_the_whole_tile(name: str, num_bytes: int) -> None:
    assert Listing.of(target_of(name).chip).pointer_bytes == num_bytes


def test_a_plan_says_what_lists_its_vertices_have() -> None:
    small, large = (
        plan_conv("conv", (4, 64, 28, 28), (64, 64, size, size), padding=size // 2)
        for size in (1, 5)
    )
    lists = [
        group.list_bytes
        for plan in (small, large)
        for step in plan.steps
        for group in getattr(step, "vertices", ())
        if "ConvPartial" in group.codelet.name
    ]
    assert 0 < lists[0] < lists[1] / 5
