"""The numbers of an optimiser as named tensors, read and loaded."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch

import poptorch
from poptorch import optim
from poptorch._optim.description import Description, describe
from poptorch._optim.parameters import encode, load

NAMES = (("w", "b"),)


def described(kind: Any, **arguments: Any) -> Description:
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
    return describe(kind(weights, **arguments), is_automatic=False)


def numbers(description: Description, share: float = 1.0) -> dict[str, float]:
    tensors = encode(description, NAMES, share)
    return {name: round(tensor.item(), 6) for name, tensor in tensors.items()}


def test_plain_sgd_has_products() -> None:
    sgd = described(
        optim.SGD, lr=0.5, dampening=0.5, weight_decay=0.25, loss_scaling=2.0
    )
    # lr (1 - dampening) / scaling / 4 micro-batches, and 1 - lr (1 - dampening) decay.
    values = {"scaledLearningRate0": 0.03125, "weightDecayScaleFactor0": 0.9375}
    assert numbers(sgd, share=0.25) == {
        "lossScaling_FLOAT": 2.0,
        **{f"{k}___specific___{w}": v for k, v in values.items() for w in "wb"},
    }


def test_constants_are_compiled_in() -> None:
    adam = described(optim.Adam, lr=0.5)
    assert numbers(adam) == {
        "learningRate___specific___w": 0.5,
        "learningRate___specific___b": 0.5,
    }


@pytest.mark.parametrize(
    ("kind", "arguments", "names"),
    [
        (
            optim.SGD,
            {"momentum": 0.5},
            {"scaledLearningRate2", "scaledMomentum2"},
        ),
        (
            optim.SGD,
            {"momentum": 0.5, "use_combined_accum": True},
            {"scaledLearningRate1", "scaledMomentum1"},
        ),
        (
            optim.LAMB,
            {"betas": (0.5, 0.5), "max_weight_norm": 2.0},
            {"learningRate", "adamBeta1", "adamBeta2", "maxWeightNorm"},
        ),
        (optim.RMSprop, {"alpha": 0.5}, {"learningRate", "adaptiveAlpha"}),
    ],
)
def test_names(kind: Any, arguments: dict[str, Any], names: set[str]) -> None:
    found = numbers(described(kind, lr=0.1, **arguments))
    assert {
        name.removesuffix("___specific___w") for name in found if "w" in name[-1]
    } == names


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (optim.SGD, {"weight_decay": 0.1, "loss_scaling": 2.0}),
        (optim.SGD, {"momentum": 0.5, "weight_decay": 0.1, "dampening": 0.5}),
        (optim.AdamW, {"weight_decay": 0.1, "eps": 1e-3}),
        (optim.RMSprop, {"momentum": 0.5}),
    ],
    ids=str,
)
def test_loaded_numbers_are_read_back(kind: Any, arguments: dict[str, Any]) -> None:
    description = described(kind, lr=0.1, **arguments)
    wanted = {
        name: tensor * (2.0 if name.endswith("w") else 0.5)
        for name, tensor in encode(description, NAMES, 0.5).items()
    }
    loaded, names = load(description, NAMES, 0.5, wanted)
    assert encode(loaded, names, 0.5) == wanted
    assert names == (("w",), ("b",))


def test_equal_numbers_change_nothing() -> None:
    description = described(optim.SGD, lr=0.1, momentum=0.9, loss_scaling=3.0)
    tensors = encode(description, NAMES, 0.3)
    assert load(description, NAMES, 0.3, tensors) == (description, NAMES)


def test_a_loaded_rate_is_the_rate_of_its_weight() -> None:
    description = described(optim.SGD, lr=0.1, loss_scaling=4.0)
    tensors = encode(description, NAMES, 1.0)
    tensors["scaledLearningRate0___specific___b"] = torch.tensor(0.5)
    loaded, names = load(description, NAMES, 1.0, tensors)
    rates = [group["learningRate"].value for group in loaded.groups]
    assert dict(zip(names, rates, strict=True)) == {("w",): 0.1, ("b",): 2.0}


def test_missing_numbers_stay_and_that_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    description = described(optim.Adam, lr=0.5)
    with caplog.at_level(logging.WARNING):
        assert load(description, NAMES, 1.0, {})[0] == description
    assert "lacks parameter learningRate___specific___w" in caplog.text


def test_a_decay_that_no_setting_makes_is_refused() -> None:
    description = described(optim.SGD, lr=0.5, weight_decay=0.1)
    tensors = encode(description, NAMES, 1.0)
    tensors["scaledLearningRate0___specific___b"] = torch.tensor(0.0)
    with pytest.raises(poptorch.Error, match="which no weight_decay does"):
        load(description, NAMES, 1.0, tensors)
