"""Gradients of micro-batches: their sum, their mean, and the types of both."""

from __future__ import annotations

import pytest
import torch

from popple.engine.torch.updates.gradients import (
    add_to_total,
    scale_gradients,
    start_total,
)

HALF = torch.float16


def accumulated(dtype: torch.dtype | None, is_running_mean: bool) -> torch.Tensor:
    """49152 and 32768 in float16, accumulated."""
    first, second = (torch.tensor([v], dtype=HALF) for v in (49152.0, 32768.0))
    total = start_total([first, None], dtype)
    add_to_total(total, [second, None], num_before=1, is_running_mean=is_running_mean)
    (result, nothing) = total
    assert result is not None
    assert nothing is None
    return result


def test_a_sum_in_half_overflows_and_a_wide_one_does_not() -> None:
    assert accumulated(None, False).item() == float("inf")
    assert accumulated(torch.float32, False).item() == 81920


def test_a_running_mean_stays_in_range() -> None:
    mean = accumulated(None, True)
    assert (mean.dtype, mean.item()) == (HALF, 40960)


def test_totals_do_not_touch_the_gradients() -> None:
    gradient = torch.ones(1).expand(3)
    (total,) = start_total([gradient], None)
    assert total is not None
    total.add_(1)
    assert gradient.tolist() == [1, 1, 1]


@pytest.mark.parametrize("is_owned", [True, False])
def test_scaling_is_done_in_float32(is_owned: bool) -> None:
    # 2**-20 times 2**-8 underflows in float16.
    gradient = torch.tensor([2.0**-20], dtype=HALF)
    (scaled,) = scale_gradients([gradient], 2.0**-8, is_owned=is_owned)
    assert (scaled.dtype, scaled.item()) == (torch.float32, 2.0**-28)
    assert gradient.item() == 2.0**-20


def test_only_owned_gradients_are_overwritten() -> None:
    gradient = torch.ones(1)
    assert scale_gradients([gradient], 1.0, is_owned=False)[0] is gradient
    scale_gradients([gradient], 2.0, is_owned=False)
    assert gradient.item() == 1
    scale_gradients([gradient], 2.0, is_owned=True)
    assert gradient.item() == 2
