"""Slices whose beginning is a tensor."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import options
from tests.poptorch.running import compiled, on_ipu

X = torch.arange(12.0).view(2, 6)


def sliced(x: Tensor, start: Tensor, size: int = 3, step: int = 1) -> Tensor:
    return poptorch.dynamic_slice(x, 1, start, size, step)


@pytest.mark.parametrize("step", [1, 2])
def test_a_slice_begins_where_the_run_says(step: int) -> None:
    model = compiled(lambda x, start: sliced(x, start, 3, step))
    for start in (0, 2, 3):
        begin = torch.tensor([start])
        expected = X[:, start : start + 3 : step]
        assert torch.equal(model(X, begin), expected)
        assert torch.equal(sliced(X, begin, 3, step), expected)


def test_past_the_end_it_begins_again() -> None:
    result = on_ipu(sliced, X, torch.tensor([5]))
    assert torch.equal(result, X[:, [5, 0, 1]])


def test_a_slice_has_a_gradient() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(X.clone())

        def forward(self, start: Tensor) -> Tensor:
            return poptorch.identity_loss(sliced(self.weight, start), "sum")

    module = Model()
    optimizer = poptorch.optim.SGD(module.parameters(), lr=1.0)
    poptorch.trainingModel(module, options(), optimizer)(torch.tensor([2]))
    expected = X.clone()
    expected[:, 2:5] -= 1
    assert torch.equal(module.weight.detach(), expected)


@pytest.mark.parametrize(
    ("size", "step", "message"),
    [
        (0, 1, "start and end of a slice must be different"),
        (-1, 1, "end less than the start"),
        (4, 1, r"size of the slice \(4\) must be a factor .* \(6\)"),
        (3, 0, "step of a slice must be at least 1"),
        (1.5, 1, "size of a dynamic slice must be an int, not float"),
    ],
)
def test_a_slice_that_cannot_be_is_refused(size: Any, step: int, message: str) -> None:
    with pytest.raises(poptorch.Error, match=message):
        on_ipu(lambda x, start: sliced(x, start, size, step), X, torch.tensor([1]))


@pytest.mark.parametrize(
    "start", [torch.tensor([0.5]), torch.tensor([1, 2]), 1, torch.tensor([True])]
)
def test_a_start_is_one_integer_in_a_tensor(start: Any) -> None:
    with pytest.raises(poptorch.Error, match="start of a dynamic slice"):
        sliced(X, start)


@pytest.mark.parametrize("dim", [0, 1])
def test_an_update_replaces_a_slice_of_a_copy(dim: int) -> None:
    src = -torch.ones(1, 6) if dim == 0 else -torch.ones(2, 1)

    def updated(x: Tensor, start: Tensor) -> Tensor:
        return poptorch.dynamic_update(x, src.to(x.device), dim, start, 1)

    expected = X.clone()
    expected.select(dim, 1).fill_(-1)
    start = torch.tensor([1])
    assert torch.equal(on_ipu(updated, X, start), expected)
    assert torch.equal(updated(X, start), expected)
    assert torch.equal(X, torch.arange(12.0).view(2, 6))


@pytest.mark.parametrize(
    ("src", "message"),
    [
        (torch.ones(6), r"same dimensionality. \(2\) vs \(1\)"),
        (torch.ones(1, 6).long(), r"same dtype. \(torch.float32 vs torch.int32\)"),
        (torch.ones(2, 6), "src has 2 elements along dimension 0"),
    ],
)
def test_an_update_that_does_not_fit_is_refused(src: Tensor, message: str) -> None:
    def updated(x: Tensor, src: Tensor, start: Tensor) -> Tensor:
        return poptorch.dynamic_update(x, src, 0, start, 1)

    with pytest.raises(poptorch.Error, match=message):
        compiled(updated).compile(X, src, torch.tensor([1, 0])[:1])
