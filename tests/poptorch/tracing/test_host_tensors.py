"""Tensors made on the host inside forward, and functions that need constant sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import poptorch
from tests.poptorch.running import on_ipu

X = torch.tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.LongTensor([1, 0]),
        lambda: torch.from_numpy(np.array([1, 0])),
    ],
)
def test_they_must_not_meet_tensors_of_the_ipu(make: Callable[[], Tensor]) -> None:
    message = r"Expected an IPU tensor but got .*device=cpu, shape=\[2\], dtype=Long"
    with pytest.raises(poptorch.Error, match=message):
        on_ipu(lambda x: x.index_select(0, make()), X)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.LongTensor([1, 0]).to(x.device),
        lambda x: torch.LongTensor([1, 0]).to("ipu"),
        lambda x: torch.tensor([1, 0]),
        lambda x: [1, 0],
    ],
)
def test_they_may_be_moved_there(make: Callable[[Tensor], Any]) -> None:
    assert torch.equal(on_ipu(lambda x: x[make(x)], X), X[[1, 0]])


def test_they_may_meet_each_other() -> None:
    def forward(x: Tensor) -> Tensor:
        sums = torch.Tensor([1.0]) + torch.Tensor([2.0])
        return x + sums.to(x.device)

    assert torch.equal(on_ipu(forward, X), X + 3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (F.one_hot, "OneHot num classes must be specified"),
        (torch.bincount, "constant minlength"),
    ],
)
def test_sizes_that_values_decide_must_be_given(
    function: Callable[..., Tensor], message: str
) -> None:
    numbers = torch.tensor([0, 2])
    with pytest.raises(poptorch.Error, match=message):
        on_ipu(function, numbers)
    result = on_ipu(lambda x: function(x, **_size(function)), numbers)
    assert torch.equal(result, function(numbers).to(torch.int32))


def _size(function: Any) -> dict[str, int]:
    return {"num_classes": 3} if function is F.one_hot else {"minlength": 3}
