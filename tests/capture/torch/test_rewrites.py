"""Rewrites: operators in other forms, and running statistics read in a step."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.capture.torch.tracing import lower_traced, operators, replayed, trace


class Normalised(nn.Module):
    """Batch norm, and something read from its running mean."""

    def __init__(self, read: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2, affine=False)
        self._read = read

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.norm(x)
        assert self.norm.running_mean is not None
        return y, self._read(self.norm.running_mean)


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda mean: mean, 0.0),
        (lambda mean: mean.view(2, 1) + 1, 1.0),
        # Who writes to it reads what is written: 0.1 of the batch's mean 1, and 1.
        (lambda mean: mean.add_(1), 1.1),
    ],
    ids=["returned", "viewed", "written"],
)
def test_statistics_are_read_as_they_were(
    read: Callable[[Tensor], Tensor], expected: float
) -> None:
    module = Normalised(read)
    x = torch.tensor([[0.0, 0.0], [2.0, 2.0]])
    step = trace(module, x)
    buffers = [buffer.clone() for buffer in module.buffers()]
    _, value = replayed(step, *buffers, x)
    torch.testing.assert_close(value.flatten(), torch.full((2,), expected))
    written = 1.1 if expected > 1 else 0.1
    torch.testing.assert_close(buffers[0], torch.full((2,), written))
    lower_traced(step)


def test_statistics_nobody_reads_are_not_copied() -> None:
    step = trace(nn.BatchNorm1d(2), torch.ones(3, 2))
    assert "aten.clone" not in operators(step)


def test_numbers_drawn_in_place_have_their_bounds() -> None:
    step = trace(lambda x: (x + 0).random_(2, 4), torch.ones(200))
    assert "aten.randint_like" in operators(step)
    (drawn,) = replayed(step, torch.ones(200))
    assert set(drawn.tolist()) == {2, 3}


def test_numbers_without_an_upper_bound_are_whole() -> None:
    step = trace(lambda x: (x + 0).random_(5, None), torch.ones(200))
    (drawn,) = replayed(step, torch.ones(200))
    assert drawn.equal(drawn.floor())
    assert drawn.min() >= 5


def test_counts_have_the_length_that_is_asked_for() -> None:
    numbers = torch.tensor([1, 1, 3])
    step = trace(lambda x: torch.bincount(x, minlength=5), numbers)
    (counts,) = replayed(step, numbers)
    assert counts.tolist() == [0, 2, 0, 1, 0]
    assert counts.dtype is torch.int64


def test_whole_weights_give_counts_of_double_precision() -> None:
    numbers, weights = torch.tensor([1, 1, 3]), torch.tensor([2, 3, 4])
    step = trace(lambda x, w: torch.bincount(x, w, 5), numbers, weights)
    (counts,) = replayed(step, numbers, weights)
    assert counts.dtype is torch.bincount(numbers, weights, 5).dtype
    assert counts.tolist() == [0, 5, 0, 4, 0]
