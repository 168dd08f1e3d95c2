"""Programs that are captured and modelled, not computed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import popple
import poptorch


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.layer(x)
        return y, poptorch.identity_loss(y.square(), "sum")


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> poptorch.PoplarExecutor:
    monkeypatch.setenv("POPPLE_MODEL_ONLY", "1")
    model = Model()
    options = poptorch.Options()
    options.outputMode(poptorch.OutputMode.All)
    options.Training.gradientAccumulation(2)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1)
    return poptorch.trainingModel(model, options, optimizer)


def test_results_are_zeros_and_weights_stay(
    training: poptorch.PoplarExecutor,
) -> None:
    layer: Any = training.model.layer
    before = layer.weight.detach().clone()
    y, loss = training(torch.randn(6, 8))
    assert y.shape == (6, 4)
    assert loss.shape == (2,)
    assert not y.any()
    training.copyWeightsToHost()
    assert torch.equal(layer.weight, before)


def test_the_cost_is_modelled_all_the_same(training: poptorch.PoplarExecutor) -> None:
    training.compile(torch.randn(6, 8))
    assert popple.modelled(training).simulation.cost.cycles > 0


def test_a_smaller_micro_batch_is_captured_again(
    training: poptorch.PoplarExecutor,
) -> None:
    training.compile(torch.randn(8, 8))
    case = training.__popple_case__()
    assert case.rebatch is not None
    smaller = case.rebatch(2)
    assert (case.options.micro_batch, smaller.options.micro_batch) == (4, 2)
    assert smaller.graph.type_of(smaller.graph.outputs[0]).shape == (2, 4)


def test_advice_on_an_executor(training: poptorch.PoplarExecutor) -> None:
    training.compile(torch.randn(8, 8))
    advice = popple.advise(training, always=True)
    assert advice.outcome.fits
    assert "half the micro-batch" in [each.name for each in advice.remedies]
