"""Tensors inside a model that the program wants to see."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from poptorch import OutputMode
from poptorch._model.anchors import anchors_of
from tests.poptorch.models import options


class Doubles(nn.Module):
    """w * x, doubled in place and shifted; the loss is the sum."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([3.0]))

    def forward(self, x: Tensor) -> Tensor:
        product = x * self.w
        product.mul_(2)
        return poptorch.identity_loss(product + 1, "sum")


def run(
    opts: poptorch.Options, x: Tensor, lr: float = 0.0, training: bool = True
) -> poptorch.PoplarExecutor:
    module = Doubles()
    sgd = poptorch.optim.SGD(module.parameters(), lr=lr)
    if training:
        model = poptorch.trainingModel(module, opts, sgd)
    else:
        model = poptorch.inferenceModel(module, opts)
    model(x)
    return model


def anchored(name: str, opts: poptorch.Options, x: Tensor, **kwargs: Any) -> Tensor:
    opts.anchorTensor("it", name)
    return run(opts, x, **kwargs).getAnchoredTensor("it")


def test_a_value_is_seen_as_it_was_computed() -> None:
    x = torch.tensor([1.0, 2.0])
    assert anchored("Mul:0", options(), x).tolist() == [3, 6]  # before doubling
    assert anchored("Add:0", options(), x).tolist() == [7, 13]


def test_inputs_and_weights_are_seen() -> None:
    x = torch.tensor([4.0])
    assert anchored("input", options(), x).tolist() == [4]
    assert anchored("w", options(), x, lr=1.0).tolist() == [3]


def test_gradients_are_those_of_one_micro_batch() -> None:
    # d sum(2 w x + 1) / dw = 2 sum(x): 2 and 4; their mean would be 3.
    opts = options(g=2, mode=OutputMode.All)
    x = torch.tensor([1.0, 2.0])
    assert anchored("Gradient___w", opts, x).tolist() == [2, 4]


def test_names_of_earlier_sdks_are_known() -> None:
    # d sum(2 w x + 1) / dw = 2 x, and 3 - 2 after the update.
    x = torch.tensor([1.0])
    assert anchored("Gradient___model.w", options(), x).tolist() == [2]
    assert anchored("UpdatedVar___model.w", options(), x, lr=1.0).tolist() == [1]
    with pytest.raises(poptorch.Error, match=r"no tensor 'model\.v'"):
        anchored("model.v", options(), x)


def test_a_model_that_has_a_model_keeps_its_names() -> None:
    opts = options()
    opts.anchorTensor("it", "Gradient___model.w")
    (anchor,) = anchors_of(opts, training=True, weights={"w", "model.w"})
    assert (anchor.key, anchor.name) == ("it", "Gradient___model.w")


def test_gradients_carry_the_loss_scale() -> None:
    module = Doubles()
    sgd = poptorch.optim.SGD(module.parameters(), lr=0.5, loss_scaling=16.0)
    opts = options()
    opts.anchorTensor("it", "Gradient___w")
    model = poptorch.trainingModel(module, opts, sgd)
    model(torch.tensor([1.0]))
    assert model.getAnchoredTensor("it").item() == 32
    assert module.w.item() == 2  # 3 - 0.5 * 2


def test_weights_after_their_update() -> None:
    # Gradients 2, then 4: 3 - 2 = 1, 1 - 4 = -3.
    opts = options(d=2, mode=OutputMode.All)
    x = torch.tensor([1.0, 2.0])
    assert anchored("UpdatedVar___w", opts, x, lr=1.0).tolist() == [1, -3]


def test_the_optimisers_numbers() -> None:
    name = "scaledLearningRate0___specific___w"
    found = anchored(name, options(), torch.tensor([1.0]), lr=0.25)
    assert found.item() == 0.25


@pytest.mark.parametrize(
    ("mode", "period", "expected"),
    [
        (OutputMode.All, 1, [3, 6, 9, 12]),
        (OutputMode.EveryN, 2, [6, 12]),
        (OutputMode.Final, 1, [12]),
        (OutputMode.Sum, 1, [30]),
    ],
)
def test_anchors_have_a_mode_of_their_own(
    mode: OutputMode, period: int, expected: list[float]
) -> None:
    opts = options(d=4)
    opts.anchorTensor("it", "Mul:0", mode, period)
    model = run(opts, torch.tensor([1.0, 2.0, 3.0, 4.0]), training=False)
    assert model.getAnchoredTensor("it").tolist() == expected


def test_a_period_longer_than_the_call_leaves_nothing() -> None:
    opts = options()
    opts.anchorTensor("it", "Mul:0", OutputMode.EveryN, 4)
    model = run(opts, torch.tensor([1.0]), training=False)
    with pytest.raises(AssertionError, match="No tensor was anchored as it"):
        model.getAnchoredTensor("it")


def test_what_is_not_there_cannot_be_anchored() -> None:
    opts = options()
    opts.anchorTensor("it", "Mull:0")
    with pytest.raises(
        poptorch.Error, match=r"no tensor 'Mull:0'.*Did you mean 'Mul:0"
    ):
        run(opts, torch.tensor([1.0]))


def test_unknown_short_names() -> None:
    opts = options()
    opts.anchorTensor("product", "Mul:0")
    model = run(opts, torch.tensor([1.0]))
    with pytest.raises(AssertionError, match="Did you mean 'product'"):
        model.getAnchoredTensor("produkt")


def test_outputs_are_as_without_anchors() -> None:
    x = torch.tensor([1.0, 2.0])
    opts = options()
    opts.anchorTensor("it", "Mul:0")
    module = Doubles()
    model = poptorch.inferenceModel(module, opts)
    assert model(x).item() == module(x).item() == 20


def test_anchors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="poptorch::python")
    opts = options(d=4)
    opts.anchorTensor("it", "Mul:0", OutputMode.EveryN, 2)
    run(opts, torch.ones(4), training=False)
    assert any("Mul:0 EVERYN/2" in message for message in caplog.messages)
