from __future__ import annotations

import pytest
import torch
from torch import Tensor

from popple.errors import CaptureError
from poptorch_geometric._foreign.scatter import (
    OPERATORS,
    scatter_max,
    scatter_min,
    scatter_mul,
)

VALUES = torch.tensor([5.0, 1.0, 5.0, 2.0])
PLACES = torch.tensor([0, 0, 0, 2])


def test_the_first_of_equal_values_wins() -> None:
    values, where = scatter_max(VALUES, PLACES, 0, None, 3)
    # Place 1 is empty: the value is 0 and the position one past the last.
    assert (values.tolist(), where.tolist()) == ([5, 0, 2], [0, 4, 3])


def test_the_smallest_values() -> None:
    values, where = scatter_min(VALUES, PLACES, 0, None, 3)
    assert (values.tolist(), where.tolist()) == ([1, 0, 2], [1, 4, 3])


def test_what_out_holds_is_a_rival_and_is_overwritten() -> None:
    out = torch.tensor([5.0, 7.0, 1.0])
    values, where = scatter_max(VALUES, PLACES, 0, out)
    assert values is out
    assert (out.tolist(), where.tolist()) == ([5, 7, 2], [4, 4, 3])


def test_a_gradient_goes_to_one_place() -> None:
    values = VALUES.clone().requires_grad_()
    scatter_max(values, PLACES, 0, None, 3)[0].sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [1, 0, 0, 1]


def test_a_vector_of_places_runs_along_the_dimension() -> None:
    values = torch.arange(8.0).view(2, 4)
    found, where = scatter_max(values, PLACES, -1, None, 3)
    assert found.tolist() == [[2, 0, 3], [6, 0, 7]]
    assert where.tolist() == [[2, 4, 3], [2, 4, 3]]


def test_places_may_have_fewer_dimensions() -> None:
    values = torch.arange(8.0).view(2, 2, 2)
    places = torch.tensor([[0, 0], [1, 0]])
    found, _ = scatter_max(values, places, 1, None, 2)
    assert found.tolist() == [[[2, 3], [0, 0]], [[6, 7], [4, 5]]]


def test_products() -> None:
    assert scatter_mul(VALUES, PLACES, 0, None, 3).tolist() == [25, 1, 2]
    out = torch.tensor([2.0, 3.0, 4.0])
    assert scatter_mul(VALUES, PLACES, 0, out) is out
    assert out.tolist() == [50, 3, 8]


@pytest.mark.parametrize("scatter", [scatter_max, scatter_min, scatter_mul])
def test_the_size_must_be_known(scatter: object) -> None:
    with pytest.raises(CaptureError, match="Pass dim_size"):
        scatter(VALUES, PLACES, 0)  # pyright: ignore[reportCallIssue]


def first(result: Tensor | tuple[Tensor, ...]) -> list[float]:
    return (result[0] if isinstance(result, tuple) else result).tolist()


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        ("sum", [11, 0, 2]),
        ("mean", [11 / 3, 0, 2]),
        ("min", [1, 0, 2]),
        ("max", [5, 0, 2]),
    ],
)
def test_segments(reduce: str, expected: list[float]) -> None:
    by_index = OPERATORS[f"segment_{reduce}_coo"](VALUES, PLACES, None, 3)
    pointers = torch.tensor([0, 3, 3, 4])
    by_pointer = OPERATORS[f"segment_{reduce}_csr"](VALUES, pointers, None)
    assert first(by_index) == first(by_pointer) == pytest.approx(expected)


def test_segments_of_rows() -> None:
    values = torch.arange(6.0).view(2, 3)
    pointers = torch.tensor([[0, 1, 3], [0, 2, 3]])
    found = OPERATORS["segment_sum_csr"](values, pointers, None)
    assert found.tolist() == [[0, 3], [7, 5]]


def test_segments_are_not_written_elsewhere() -> None:
    with pytest.raises(CaptureError, match="Leave `out`"):
        OPERATORS["segment_sum_csr"](VALUES, PLACES, torch.zeros(3))
