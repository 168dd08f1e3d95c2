"""Loss scales in traced steps, and counts of the large gradients they make."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from popple.capture.torch import TraceRequest, trace_step
from popple.capture.torch.trace import TracedStep
from popple.engine.torch.rewrites.gradient_counts import with_gradient_counts


class Square(nn.Module):
    """Sum of squares of weight times x."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        return torch.nn.functional.mse_loss(
            self.weight * x, torch.zeros_like(x), reduction="sum"
        )


def traced(dtype: torch.dtype) -> TracedStep:
    module = Square(dtype)
    return trace_step(
        TraceRequest(
            module=module,
            parameters=dict(module.named_parameters()),
            buffers={},
            inputs=[torch.ones(4, dtype=dtype)],
            trainable=("weight",),
            scales_loss=True,
        )
    )


def arguments(dtype: torch.dtype, scale: float) -> list[Tensor]:
    weight = torch.ones(4, dtype=dtype)
    return [weight, torch.tensor([1.0, 1, 1, 100], dtype=dtype), torch.tensor(scale)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_last_argument_scales_all_gradients(dtype: torch.dtype) -> None:
    step = traced(dtype)
    with torch.no_grad():
        _, plain = step.graph_module(*arguments(dtype, 1.0))
        loss, scaled = step.graph_module(*arguments(dtype, 2.0))
    assert torch.equal(scaled, 2 * plain)
    assert loss.item() == 10003 if dtype is torch.float32 else 10000
    assert step.num_inputs == 1


@pytest.mark.parametrize(("scale", "num_large"), [(0.01, 0), (1.0, 1), (1024.0, 8)])
def test_the_share_of_large_gradients(scale: float, num_large: int) -> None:
    module = with_gradient_counts(traced(torch.float16).graph_module, 1000.0)
    with torch.no_grad():
        *_, counted = module(*arguments(torch.float16, scale))
    # 2 x for the product and 2 x**2 for the weight: 2, or 200 and 20000 for the last x.
    assert counted.item() == num_large / 8


def test_gradients_that_overflow_are_large() -> None:
    module = with_gradient_counts(traced(torch.float16).graph_module, 65504.0)
    with torch.no_grad():
        *_, counted = module(*arguments(torch.float16, 16.0))
    assert counted.item() == 1 / 8


def test_nothing_is_counted_without_halves() -> None:
    module = traced(torch.float32).graph_module
    assert with_gradient_counts(module, 1000.0) is module
