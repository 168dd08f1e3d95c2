"""Marks, printing and host calls: what they compute, and their gradients."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from popple.capture.torch import (
    ActiveTrace,
    HostFunction,
    gelu_erf,
    mark,
    print_tensor,
)
from popple.errors import CaptureError
from popple.tensor_text import TensorFormat
from tests.capture.torch.tracing import operators, replayed, trace

X = torch.tensor([1.0, 2.0])


class Printed(nn.Module):
    """The loss of a weight that is printed on the way."""

    def __init__(self, gradient_title: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(X.clone())
        self.gradient_title = gradient_title

    def forward(self) -> Tensor:
        shown = print_tensor(self.weight, "w", self.gradient_title, TensorFormat())
        return nn.functional.mse_loss(shown, torch.zeros(2), reduction="sum")


def doubled(x: Tensor, is_enabled: Tensor | None = None) -> Tensor:
    """Twice x, computed on the host."""
    host = HostFunction(lambda t: [t * 2], "double", ((X.shape, X.dtype),))
    return host.call([x], is_enabled)[0]


def test_a_mark_is_the_same_tensor_in_memory_of_its_own() -> None:
    step = trace(lambda x: mark(x, "note", "text"), X)
    (result,) = replayed(step, X)
    assert torch.equal(result, X)
    assert result.data_ptr() != X.data_ptr()
    assert operators(step)[0] == "popple.mark"


class Exact(nn.Module):
    """The loss of a weight behind GELU by the error function."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(X.clone())

    def forward(self) -> Tensor:
        found = gelu_erf(self.weight)
        return nn.functional.mse_loss(found, torch.zeros(2), reduction="sum")


def test_gelu_by_the_error_function_has_the_gradient_of_gelu() -> None:
    weight = X.clone().requires_grad_()
    nn.functional.gelu(weight).square().sum().backward()
    step = trace(Exact(), train=True)
    assert "popple.gelu_erf" in operators(step)
    _, gradient = replayed(step, X)
    assert weight.grad is not None
    assert torch.allclose(gradient, weight.grad)


def test_a_tensor_and_its_gradient_are_printed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    step = trace(Printed("w_gradient"), train=True)
    assert capfd.readouterr().err == ""
    # The gradient of the sum of squares is twice the weight.
    _, gradient = replayed(step, X)
    assert torch.equal(gradient, 2 * X)
    assert capfd.readouterr().err == "w: (1.000,2.000)\nw_gradient: (2.000,4.000)\n"


def test_a_gradient_without_a_title_is_not_printed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    replayed(trace(Printed(""), train=True), X)
    assert capfd.readouterr().err == "w: (1.000,2.000)\n"


def test_a_tensor_can_switch_printing_off(capfd: pytest.CaptureFixture[str]) -> None:
    def forward(x: Tensor, is_enabled: Tensor) -> Tensor:
        return print_tensor(x, "x", "", TensorFormat(), is_enabled)

    step = trace(forward, X, torch.tensor(True))
    replayed(step, X, torch.tensor(False))
    assert capfd.readouterr().err == ""
    replayed(step, X, torch.tensor(True))
    assert capfd.readouterr().err == "x: (1.000,2.000)\n"


def test_bfloat16_can_be_printed(capfd: pytest.CaptureFixture[str]) -> None:
    print_tensor(X.bfloat16(), "x", "", TensorFormat())
    assert capfd.readouterr().err == "x: (1.000,2.000)\n"


def test_a_host_function_runs_when_the_step_runs() -> None:
    step = trace(lambda x: doubled(x) + 1, X)
    gc.collect()  # nobody but the step holds the function now
    assert torch.equal(replayed(step, X)[0], 2 * X + 1)


def test_a_host_call_that_is_switched_off_gives_zeros() -> None:
    step = trace(doubled, X, torch.tensor(True))
    assert torch.equal(replayed(step, X, torch.tensor(False))[0], torch.zeros(2))


def test_there_is_no_gradient_through_a_host_function() -> None:
    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(X.clone())

        def forward(self) -> Tensor:
            return nn.functional.l1_loss(doubled(self.weight), torch.zeros(2))

    with pytest.raises(CaptureError, match="double has no gradient"):
        trace(Loss(), train=True)


def test_code_run_outside_sees_real_weights_and_is_not_traced() -> None:
    module = nn.Linear(2, 1, bias=False)
    seen: list[Any] = []

    class Host(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, x: Tensor) -> Tensor:
            seen.append(traces[0].run_outside(lambda t: self.inner(t + 1), [x]))
            return x.clone()

    traces: list[ActiveTrace] = []
    step = trace(Host(), X, listener=traces.append)
    # Zeros plus one through a linear layer: the sum of its weights.
    torch.testing.assert_close(seen[0], module.weight.sum().view(1))
    assert operators(step) == ["aten.clone", "aten.detach"]
