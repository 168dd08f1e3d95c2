"""A subclass of PoplarExecutor that turns dicts into tuples and back.

As wrappers of vision libraries do it: the module that runs takes one tuple, the
parser is put in at the first call, attaching twice does nothing.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from poptorch import PoplarExecutor
from poptorch._args_parser import ArgsParser
from tests.programs.poptorch.plain import (
    Net,
    assert_equal_state,
    batch,
    made,
    quiet,
    step,
)


class NamesOnly(ArgsParser):
    """Knows the names of the arguments and nothing else."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        self._has_variadic_arguments = True
        self._varnames = list(inputs)
        self._defaults = [inspect.Parameter.empty for _ in self._varnames]
        self._warned_not_contiguous_input = False


class Flat(nn.Module):
    """Runs a network on a tuple; remembers the names of what it returns."""

    def __init__(self, net: nn.Module, keys: list[str]) -> None:
        super().__init__()
        self.net = net
        self.keys = keys
        self.returned: list[str] = []

    def forward(self, tensors: tuple[Tensor, ...]) -> list[Tensor]:
        data = dict(zip(self.keys, tensors, strict=True))
        result = {"scores": self.net(data["image"])}
        if "label" in data:
            result["loss"] = F.cross_entropy(result["scores"], data["label"])
            poptorch.identity_loss(result["loss"], reduction="none")
        self.returned[:] = result
        return list(result.values())


class DictExecutor(PoplarExecutor):
    """Takes and returns dicts."""

    def __init__(self, model: Net, training: bool = True, **kwargs: Any) -> None:
        self.keys = ["image", "label"] if training else ["image"]
        self.flat = Flat(model, self.keys)
        super().__init__(self.flat, training=training, **kwargs)
        self._args_parser = None

    @property
    def training(self) -> bool:
        return self._training

    def run(self, data: dict[str, Tensor]) -> dict[str, Tensor]:
        inputs = tuple(data[key] for key in self.keys)
        if self._args_parser is None:
            self._args_parser = NamesOnly({"tensors": inputs})
        return dict(zip(self.flat.returned, self(inputs), strict=True))

    def attachToDevice(self) -> None:
        if self.isCompiled() and not self._is_attached:
            super().attachToDevice()

    def detachFromDevice(self) -> None:
        if self.isCompiled() and self._is_attached:
            super().detachFromDevice()


def made_for(net: Net, training: bool, optimizer: Any = None) -> DictExecutor:
    return DictExecutor(
        copy.copy(net),
        options=quiet(),
        training=training,
        optimizer=optimizer,
        user_model=net,
        poptorch_version=poptorch.__version__,
    )


def test_it_trains_and_takes_turns_with_inference() -> None:
    net, twin = made()
    sgd = torch.optim.SGD(twin.parameters(), lr=0.1)
    model = made_for(net, True, poptorch.optim.SGD(net.parameters(), lr=0.1))
    assert model.training
    for seed in range(2):
        x, y = batch(seed=seed)
        result = model.run({"image": x, "label": y})
        torch.testing.assert_close(result["loss"], step(twin, sgd, x, y))
    model.detachFromDevice()
    model.detachFromDevice()
    assert_equal_state(net, twin)
    evaluation = made_for(net.eval(), False)
    x, _ = batch(seed=9)
    torch.testing.assert_close(evaluation.run({"image": x})["scores"], twin.eval()(x))
    evaluation.detachFromDevice()
    model.attachToDevice()
    model.attachToDevice()
    assert model._is_attached
    assert not evaluation._is_attached
