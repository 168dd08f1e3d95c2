"""Programs of SDK 1.4 to 2.4, whose options had other names."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import poptorch

X = torch.arange(8.0).reshape(4, 2)


class Doubled(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return 2 * x


def test_the_anchor_mode_is_the_output_mode() -> None:
    options = poptorch.Options().deviceIterations(4)
    options.anchorMode(poptorch.AnchorMode.EveryN, anchor_return_period=2)
    assert options.anchor_mode == poptorch.OutputMode.EveryN
    model = poptorch.inferenceModel(Doubled(), options)
    torch.testing.assert_close(model(X), 2 * X[1::2])


def test_the_sum_of_anchors() -> None:
    options = poptorch.Options().deviceIterations(4)
    options.anchorMode(poptorch.AnchorMode.Sum)
    model = poptorch.inferenceModel(Doubled(), options)
    torch.testing.assert_close(model(X), 2 * X.sum(0, keepdim=True))


def test_an_anchored_tensor_has_a_mode_of_its_own() -> None:
    options = poptorch.Options().deviceIterations(4)
    options.anchorTensor("x", "x", anchor_mode=poptorch.AnchorMode.All)
    assert not options.anchored_tensors["x"][1]
    assert options.anchored_tensors["x"][2] == poptorch.OutputMode.All


def weight_after(reduction: poptorch.ReductionType) -> float:
    """One update of w = 1 by the rate 0.1, of the loss w x over x = 1, 3."""
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(layer.weight)
    model = torch.nn.Sequential(layer)
    options = poptorch.Options()
    options.Training.gradientAccumulation(2)
    options.Training.accumulationReductionType(reduction)

    class Trained(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any) -> Any:
            return poptorch.identity_loss(self.model(x), reduction="sum")

    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1)
    poptorch.trainingModel(Trained(), options, optimizer)(torch.tensor([[1.0], [3.0]]))
    return layer.weight.item()


def test_the_reduction_of_accumulation() -> None:
    # The sum of gradients is 4, their mean 2.
    assert weight_after(poptorch.ReductionType.Sum) == pytest.approx(0.6)
    assert weight_after(poptorch.ReductionType.Mean) == pytest.approx(0.8)


def test_options_of_the_back_end() -> None:
    options = poptorch.Options()
    options.Popart.set("enableStochasticRounding", True)
    assert options._Popart.options["enableStochasticRounding"]


@pytest.mark.parametrize("name", ["autocast", "IPU", "Policy", "MultiConvPartialsType"])
def test_what_is_gone_says_what_to_write_instead(name: str) -> None:
    with pytest.raises(AttributeError, match=r"older release and gone: (use|convert) "):
        getattr(poptorch, name)


def test_what_never_was_is_no_name_of_an_older_release() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        poptorch.nonsense  # noqa: B018
    with pytest.raises(AttributeError, match="Invalid attribute anchorMode"):
        poptorch.Options().Training.anchorMode  # noqa: B018
