"""Private names that public programs reach for."""

from __future__ import annotations

import io
from typing import Any

import torch
from torch import nn

import poptorch
from poptorch import _args_parser, _impl, _poplar_executor
from tests.poptorch.models import Scale, options

X = torch.ones(2)


def test_a_module_can_be_unwrapped_for_a_while() -> None:
    module: Any = Scale()
    sgd = poptorch.optim.SGD(module.parameters(), lr=1.0)
    model = poptorch.trainingModel(module, options(), sgd)
    model(X)
    _impl.unwrapModelIfNecessary(module)
    assert (type(module), type(module.weight)) == (Scale, nn.Parameter)
    assert module.weight.tolist() == [0.5, 0.5]  # 1 - 1 / 2: up to date
    _impl.rewrapModelIfNecessary(module)
    assert _impl.isWrapped(module)
    model(X)
    assert module.weight.tolist() == [0, 0]


def test_unwrapped_modules_can_be_pickled() -> None:
    module = Scale()
    model = poptorch.trainingModel(module, options())
    model(X)
    _impl.unwrapModelIfNecessary(module)
    file = io.BytesIO()
    torch.save(module, file)
    assert b"PoplarExecutor" not in file.getvalue()


def test_others_are_left_alone() -> None:
    module = Scale()
    _impl.unwrapModelIfNecessary(module)
    _impl.rewrapModelIfNecessary(module)
    assert type(module) is Scale


def test_modules_under_their_old_names() -> None:
    assert _poplar_executor.PoplarExecutor is poptorch.PoplarExecutor
    bound = _args_parser.ArgsParser(Scale())((X,), {})
    assert bound.arg_names == ("x",)


def test_errors_can_be_made() -> None:
    error = _impl.createPoptorchError("No.")
    assert isinstance(error, poptorch.Error)
    assert error.message == "No."


def test_the_executable_is_there_once_compiled() -> None:
    model = poptorch.inferenceModel(Scale(), options())
    assert model._executable is None
    model.compile(X)
    assert model._executable is not None
    assert '"type": "Mul"' in model._debugGetPopartIR()
