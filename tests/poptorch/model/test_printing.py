"""Modules as text, with their blocks."""

from __future__ import annotations

import pytest
from torch import nn

import poptorch
from tests.poptorch.models import options


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Identity()))


@pytest.mark.parametrize("module", [net(), nn.ReLU(), nn.Linear(1, 1), nn.Module()])
def test_without_blocks_it_is_as_torch_prints_it(module: nn.Module) -> None:
    assert poptorch.module_repr(module) == repr(module)


def test_blocks_stand_before_their_module() -> None:
    module = net()
    poptorch.BeginBlock(module[1], "second", ipu_id=1)
    text = poptorch.module_repr(module)
    assert "(1): BeginBlock(user_id=second, ipu_id=1) Sequential(\n    (0)" in text


def test_a_wrapped_model_shows_its_blocks() -> None:
    module = net()
    poptorch.BeginBlock(module[0], ipu_id=0)
    model = poptorch.inferenceModel(module, options())
    assert repr(model) == poptorch.module_repr(module)
    assert "BeginBlock(user_id=None, ipu_id=0)" in repr(model)


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    poptorch.print(nn.ReLU())
    poptorch.print(3)
    assert capsys.readouterr().out == "ReLU()\n3\n"
