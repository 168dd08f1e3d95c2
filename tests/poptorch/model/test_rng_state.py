"""The state of the device's random numbers, as programs see and set it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import Scale, options

X = torch.ones(4)


class Draws(nn.Module):
    """Adds random numbers to its input."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand(x.shape)


def draws(seed: int = 42) -> poptorch.PoplarExecutor:
    return poptorch.inferenceModel(Draws(), options().randomSeed(seed))


def test_it_begins_with_the_seed() -> None:
    model = draws(seed=7)
    model.compile(X)
    assert model.rng_state == [7]
    model(X)
    assert model.rng_state[0] == 7
    assert len(model.rng_state) > 1


def test_a_model_goes_on_from_a_state() -> None:
    model = draws()
    model(X)
    state = model.rng_state
    expected = [model(X), model(X)]
    model.rng_state = state
    assert all(torch.equal(model(X), value) for value in expected)


def test_a_state_is_for_other_models_too() -> None:
    first, second = draws(1), draws(2)
    first(X)
    second.compile(X)
    second.rng_state = first.rng_state
    assert torch.equal(first(X), second(X))


def test_a_seed_alone_starts_anew() -> None:
    model = draws(5)
    expected = model(X)
    model.rng_state = [5]
    assert torch.equal(model(X), expected)


def test_detaching_keeps_the_state() -> None:
    model, other = draws(), draws()
    model(X)
    other(X)
    model.detachFromDevice()
    assert torch.equal(model(X), other(X))


def test_a_model_must_be_compiled() -> None:
    model = draws()
    with pytest.raises(poptorch.Error, match="has not been compiled"):
        _ = model.rng_state
    with pytest.raises(poptorch.Error, match="has not been compiled"):
        model.rng_state = [1]


@pytest.mark.parametrize("state", [[], [1, 2, 3]])
def test_what_is_no_state_is_refused(state: list[int]) -> None:
    model = draws()
    model.compile(X)
    with pytest.raises(poptorch.Error, match="RNG state"):
        model.rng_state = state


def test_transfers_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="poptorch::python")
    model = draws(seed=9)
    model(X)
    assert "Setting random seed to 9" in caplog.messages
    assert "Setting RNG state" not in caplog.messages
    caplog.clear()
    model.detachFromDevice()
    assert {"Reading random seed", "Reading RNG state"} <= {*caplog.messages}
    model.attachToDevice()
    assert "Setting RNG state" in caplog.messages


def test_without_a_seed_nothing_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="poptorch::python")
    poptorch.inferenceModel(Scale(), options())(torch.ones(2))
    assert not [text for text in caplog.messages if text.startswith("Setting random")]
