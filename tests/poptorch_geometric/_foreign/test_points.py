"""Points on a line: distances can be read off."""

from __future__ import annotations

import pytest
import torch

from popple.errors import CaptureError
from poptorch_geometric._foreign.points import (
    OPERATORS,
    PYG_OPERATORS,
    PYG_SCHEMAS,
    grid,
    knn,
    nearest,
    nearest_pairs,
    radius,
)

LINE = torch.tensor([[0.0], [1.0], [3.0], [7.0]])
HALVES = torch.tensor([0, 2, 4])


def test_neighbours_in_two_examples() -> None:
    found = knn(LINE, LINE, HALVES, HALVES, 3)
    assert found[0].tolist() == [0, 0, -1, 1, 1, -1, 2, 2, -1, 3, 3, -1]
    assert found[1].tolist() == [0, 1, -1, 1, 0, -1, 2, 3, -1, 3, 2, -1]


def test_neighbours_within_a_radius() -> None:
    found = radius(LINE, LINE, None, None, 2.5, 2, 1, True)
    assert found[1].tolist() == [1, -1, 0, 2, 1, -1, -1, -1]


def test_the_nearest_of_the_same_example() -> None:
    assert nearest(LINE, torch.tensor([[1.0], [0.0]])).tolist() == [1, 0, 0, 0]
    ends = torch.tensor([0, 1, 2])
    assert nearest(LINE, torch.tensor([[1.0], [0.0]]), HALVES, ends).tolist() == [
        0,
        0,
        1,
        1,
    ]


def test_of_equal_distances_the_first_comes_first() -> None:
    distance = torch.tensor([[1.0, 0.0, 1.0, 0.0, torch.inf, torch.nan]])
    assert nearest_pairs(distance, 6)[1].tolist() == [1, 3, 0, 2, -1, -1]


def test_half_precision_is_compared_in_float() -> None:
    # In float16 both would be 2048 away.
    points = torch.tensor([[2049.0], [2048.0]], dtype=torch.float32)
    assert nearest(torch.zeros(1, 1, dtype=torch.half), points).tolist() == [1]


def test_cells_of_a_grid() -> None:
    pos = torch.tensor([[0.0, 0.0], [11.0, 9.0], [2.0, 8.0], [2.0, 2.0], [8.0, 3.0]])
    size = torch.tensor([5.0, 5.0])
    # Three cells of 5 in 0 .. 11 and two in 0 .. 9, numbered row by row.
    assert grid(pos, size).tolist() == [0, 5, 3, 0, 1]


def test_a_grid_with_given_borders() -> None:
    pos = torch.tensor([[1.0, 1.0], [5.0, 6.0]])
    start, end = torch.zeros(2), torch.tensor([9.0, 9.0])
    assert grid(pos, torch.tensor([5.0, 5.0]), start, end).tolist() == [0, 3]


def test_sampling_an_unknown_number_is_refused() -> None:
    with pytest.raises(CaptureError, match=r"poptorch\.fps"):
        OPERATORS["fps"](LINE, HALVES, 0.5, False)


def test_schemas_are_those_of_the_functions() -> None:
    assert PYG_SCHEMAS.keys() == PYG_OPERATORS.keys()
    for name, schema in PYG_SCHEMAS.items():
        assert torch._C.parse_schema(name + schema).name == name
