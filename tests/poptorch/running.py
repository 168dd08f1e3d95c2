"""Runs a function of tensors as a compiled model, for the tests of ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

import poptorch
from tests.poptorch.models import options


class Function(nn.Module):
    """A module around a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: Any) -> Any:
        return self._function(*args)


def compiled(function: Callable[..., Any], opts: Any = None) -> poptorch.PoplarExecutor:
    """The function as an inference model."""
    return poptorch.inferenceModel(Function(function), opts or options())


def on_ipu(function: Callable[..., Any], *args: Any) -> Any:
    """What the function returns when compiled."""
    return compiled(function)(*args)
