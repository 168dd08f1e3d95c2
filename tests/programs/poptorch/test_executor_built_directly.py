"""PoplarExecutor made by hand: default options, output mode and optimiser."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from tests.programs.poptorch.plain import assert_equal_state, batch, made, quiet, step


class WithLoss(nn.Module):
    """A network and its loss."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.net(x), y)


def executor(
    model: nn.Module, options: poptorch.Options | None, training: bool
) -> poptorch.PoplarExecutor:
    return poptorch.PoplarExecutor(
        model, options, training, poptorch_version=poptorch.__version__
    )


def test_training_uses_sgd_and_returns_the_last_result() -> None:
    net, twin = made()
    options = quiet().deviceIterations(2)
    model = executor(WithLoss(net), options, training=True)
    x, y = batch(10)
    loss = model(x, y)
    sgd = torch.optim.SGD(twin.parameters(), lr=0.01)  # PopTorch's default
    step(twin, sgd, x[:5], y[:5])
    last = step(twin, sgd, x[5:], y[5:])
    assert model.options.output_mode is poptorch.OutputMode.Final
    torch.testing.assert_close(loss, last)
    assert_equal_state(net, twin)


def test_inference_returns_all_results() -> None:
    net, twin = made()
    model = executor(net.eval(), quiet().deviceIterations(2), training=False)
    x, _ = batch(10)
    torch.testing.assert_close(model(x), twin.eval()(x))
    assert model.options.output_mode is poptorch.OutputMode.All


def test_options_are_copied_and_may_be_left_out() -> None:
    options = quiet()
    model = executor(nn.Linear(2, 2), options, training=False)
    assert model.options is not options
    with pytest.raises(AttributeError, match="frozen"):
        options.deviceIterations(2)
    assert executor(nn.Linear(2, 2), None, training=False).options.replication_factor
    with pytest.raises(poptorch.Error, match=r"poptorch\.Options"):
        executor(nn.Linear(2, 2), {"a": 1}, training=False)  # type: ignore[arg-type]


def test_inference_has_no_optimiser() -> None:
    net = nn.Linear(2, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    with pytest.raises(AssertionError, match="None for inference"):
        poptorch.PoplarExecutor(net, None, False, poptorch.__version__, optimizer=sgd)
