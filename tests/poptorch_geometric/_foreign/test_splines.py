from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from popple.errors import CaptureError
from poptorch_geometric._foreign.splines import spline_basis, spline_weighting

OPEN = torch.tensor([1], dtype=torch.uint8)


def test_linear_splines_between_two_knots() -> None:
    # Five knots span 0 .. 4 on an open line: 0.375 lies half way from 1 to 2.
    basis, number = spline_basis(torch.tensor([[0.375]]), torch.tensor([5]), OPEN, 1)
    assert (basis.tolist(), number.tolist()) == ([[0.5, 0.5]], [[1, 2]])


def test_a_closed_line_ends_where_it_begins() -> None:
    closed = torch.zeros(1, dtype=torch.uint8)
    _, number = spline_basis(torch.tensor([[0.9]]), torch.tensor([5]), closed, 1)
    assert number.tolist() == [[4, 0]]


@given(st.lists(st.floats(0, 1, width=32), min_size=2, max_size=2), st.integers(1, 3))
def test_the_basis_sums_to_one(place: list[float], degree: int) -> None:
    pseudo, knots = torch.tensor([place]), torch.tensor([5, 6])
    basis, number = spline_basis(pseudo, knots, OPEN.repeat(2), degree)
    assert basis.shape == number.shape == (1, (degree + 1) ** 2)
    torch.testing.assert_close(basis.sum(), torch.tensor(1.0))
    assert number.unique().numel() == number.numel()
    assert 0 <= number.min() <= number.max() < 30


def test_the_first_dimension_changes_fastest() -> None:
    pseudo, knots = torch.tensor([[0.25, 0.5]]), torch.tensor([5, 5])
    _, number = spline_basis(pseudo, knots, OPEN.repeat(2), 1)
    assert number.tolist() == [[1 + 5 * 2, 2 + 5 * 2, 1 + 5 * 3, 2 + 5 * 3]]


def test_an_unknown_degree_is_refused() -> None:
    with pytest.raises(CaptureError, match="degree 4"):
        spline_basis(torch.zeros(1, 1), torch.tensor([5]), OPEN, 4)


def test_weights_are_summed_by_the_basis() -> None:
    x, weight = torch.tensor([[1.0, 2.0]]), torch.arange(6.0).view(3, 2, 1)
    basis, number = torch.tensor([[0.5, 2.0]]), torch.tensor([[0, 2]])
    # Half of 1*0 + 2*1 and twice 1*4 + 2*5.
    assert spline_weighting(x, weight, basis, number).tolist() == [[29.0]]
