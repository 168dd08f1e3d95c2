"""Loss scaling: gradients that float16 can hold; updates know nothing of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from poptorch import optim
from tests.poptorch.models import Classifier, Scale, batch, options


class Faint(nn.Module):
    """A loss whose gradients are 2**-26, which float16 rounds to 0."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, dtype=torch.float16))

    def forward(self, x: Tensor) -> Tensor:
        return poptorch.identity_loss((x * self.weight) * 2.0**-13 * 2.0**-13, "sum")


def trained(scaling: float, make: Any = optim.SGD) -> list[float]:
    module = Faint()
    optimizer = make(module.parameters(), lr=2.0**25, loss_scaling=scaling)
    poptorch.trainingModel(module, options(), optimizer)(
        torch.ones(2, dtype=torch.float16)
    )
    return module.weight.tolist()


def test_scaling_saves_gradients_from_underflow() -> None:
    assert trained(1.0) == [1, 1]
    assert trained(2.0**12) == [0.5, 0.5]


@pytest.mark.parametrize("scaling", [0.5, 1024.0])
@pytest.mark.parametrize("make", [optim.SGD, optim.AdamW, optim.RMSprop, optim.LAMB])
def test_scaling_by_powers_of_two_changes_nothing_else(
    make: Any, scaling: float
) -> None:
    results: list[nn.Module] = []
    for value in (1.0, scaling):
        torch.manual_seed(0)
        module = Classifier()
        optimizer = make(module.parameters(), lr=0.1, loss_scaling=value)
        model = poptorch.trainingModel(module, options(g=2), optimizer)
        for seed in range(2):
            model(*batch(8, seed))
        results.append(module)
    plain, scaled = (list(result.parameters()) for result in results)
    for mine, theirs in zip(plain, scaled, strict=True):
        assert torch.equal(mine.detach(), theirs.detach())


def test_scaling_can_change_if_it_is_variable() -> None:
    module = Scale()
    sgd = optim.SGD(module.parameters(), lr=0.5, loss_scaling=1.0)
    model = poptorch.trainingModel(module, options(), sgd)
    model(torch.ones(2))
    sgd.loss_scaling = 8.0
    model.setOptimizer(sgd)
    model(torch.ones(2))
    assert module.weight.tolist() == [0.5, 0.5]
    assert sgd.state_dict()["ipu_param"]["lossScaling_FLOAT"].item() == 8.0


def test_clipping_sees_unscaled_gradients() -> None:
    module = Scale()
    sgd = optim.SGD(
        module.parameters(), lr=1.0, loss_scaling=1024.0, max_grad_norm=100.0
    )
    poptorch.trainingModel(module, options(), sgd)(torch.ones(2))
    assert module.weight.tolist() == [0.5, 0.5]


def automatic(**settings: Any) -> poptorch.Options:
    opts = options()
    opts.Training.setAutomaticLossScaling(True)
    opts.anchorTensor("scale", "finalLossScale")
    for name, value in settings.items():
        opts._Popart.set(f"automaticLossScalingSettings.{name}", value)
    return opts


def test_automatic_scaling_grows_until_gradients_are_large() -> None:
    module = Faint()
    sgd = optim.SGD(module.parameters(), lr=0.0, loss_scaling=2.0**11)
    # Large is above 0.9995. The largest gradient is that of the first factor,
    # 2**-13 times the scale: too large when that is 2**13.
    opts = automatic(binEdgeLocation=2.0**-16, thresholdUpperCountProportion=0.0)
    model = poptorch.trainingModel(module, opts, sgd)
    scales = []
    for _ in range(5):
        model(torch.ones(2, dtype=torch.float16))
        scales.append(model.getAnchoredTensor("scale").item() / 2.0**11)
    assert scales == [1, 2, 4, 2, 4]
    factor = sgd.state_dict()["ipu_state"]["lossScaleUpdateFactor"]
    assert factor.item() == 2


def test_automatic_scaling_takes_the_scale_out_again() -> None:
    module = Faint()
    sgd = optim.SGD(module.parameters(), lr=2.0**25, loss_scaling=2.0**12)
    model = poptorch.trainingModel(module, automatic(), sgd)
    for _ in range(2):
        model(torch.ones(2, dtype=torch.float16))
    assert module.weight.tolist() == [0, 0]
    assert model.getAnchoredTensor("scale").item() == 2.0**13


def test_gradients_in_float32_do_not_move_the_scale() -> None:
    module = Scale()
    model = poptorch.trainingModel(module, automatic())
    for _ in range(3):
        model(torch.ones(2))
    assert model.getAnchoredTensor("scale").item() == 1.0


def test_bad_settings_of_automatic_scaling_are_refused() -> None:
    with pytest.raises(poptorch.Error, match="bin_edge must be between 0 and 1"):
        poptorch.trainingModel(Scale(), automatic(binEdgeLocation=2.0))
