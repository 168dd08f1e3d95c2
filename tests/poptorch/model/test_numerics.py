"""How a program asks for the machine's float16 arithmetic."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import poptorch
from popple.engine.torch import Numerics
from popple.session import read_settings
from popple.tools.run import NUMERICS
from poptorch import _translate as translate
from tests.poptorch.models import options


class Sum(nn.Module):
    """x plus a quarter of the step between float16 numbers near 1."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 2.0**-12


def machine_numerics(opts: poptorch.Options) -> Numerics:
    return translate.numerics(opts, read_settings()) or Numerics()


def run(opts: poptorch.Options) -> Tensor:
    return poptorch.inferenceModel(Sum(), opts)(torch.ones(1000).half())


def test_stochastic_rounding_is_an_option() -> None:
    assert run(options()).unique().tolist() == [1]
    wanted = options()
    wanted.Precision.enableStochasticRounding(True)
    assert run(wanted).unique().tolist() == [1, 1 + 2.0**-10]


def test_the_environment_asks_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine_numerics(options()).is_plain
    monkeypatch.setenv("POPPLE_NUMERICS", "half-partials, nan-on-overflow")
    numerics = machine_numerics(options())
    assert (numerics.half_partials, numerics.nan_on_overflow) == (True, True)
    assert not numerics.stochastic_rounding
    monkeypatch.setenv("POPPLE_NUMERICS", "all")
    assert machine_numerics(options()).stochastic_rounding
    monkeypatch.setenv("POPPLE_NUMERICS", "half-partial")
    with pytest.raises(poptorch.Error, match="'half-partials'"):
        machine_numerics(options())


def test_the_launcher_knows_the_same_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPPLE_NUMERICS", ",".join(NUMERICS))
    named = machine_numerics(options())
    monkeypatch.setenv("POPPLE_NUMERICS", "all")
    assert machine_numerics(options()) == named


def test_training_in_float16_learns_by_small_steps() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(1000).half())

        def forward(self, x: Tensor) -> Tensor:
            return poptorch.identity_loss(self.w * x, "sum")

    wanted = options(d=32)
    wanted.Precision.enableStochasticRounding(True)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0**-12)
    training = poptorch.trainingModel(model, wanted, optimizer)
    training(torch.ones(32, 1000).half())
    # 32 steps of a quarter of what float16 can hold.
    mean = model.w.detach().double().mean().item()
    assert mean == pytest.approx(1 - 32 * 2.0**-12, abs=5e-4)
