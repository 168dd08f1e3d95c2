"""Arguments bound by what a wrapper puts in `_args_parser`, or changes in it."""

from __future__ import annotations

from inspect import _ParameterKind
from typing import Any

import torch
from torch import Tensor, nn

import poptorch
from poptorch._args_parser import ArgsParser
from tests.programs.poptorch.plain import batch, made, quiet


class Weighted(nn.Module):
    """Adds what it is given, by position."""

    def forward(self, *inputs: Tensor) -> Tensor:
        return sum((i + 1) * x for i, x in enumerate(inputs))  # type: ignore[return-value]


class Dicts(nn.Module):
    """Takes one dict."""

    def forward(self, data: dict[str, Tensor]) -> Tensor:
        return data["a"] - data["b"]


class Swapping(ArgsParser):
    """Gives the model its arguments in the order of their names."""

    def __call__(self, args: Any, kwargs: Any, fast_path: bool = False) -> Any:
        parsed = ArgsParser.Args()
        for name in sorted(kwargs):
            parsed.appendArg(kwargs[name], name)
        return parsed


def test_names_are_changed_before_each_call() -> None:
    model = poptorch.inferenceModel(Weighted(), quiet())
    keys = ["nodes", "edge attributes"]  # no identifiers
    model._args_parser._varnames = keys
    model._args_parser._var_kinds = [_ParameterKind.VAR_POSITIONAL] * len(keys)
    a, b = torch.ones(3), torch.full((3,), 2.0)
    assert model(a, b).tolist() == [5, 5, 5]  # 1 * 1 + 2 * 2
    assert model._executable_inputs is not None
    assert model._executable_inputs.arg_names == ("*nodes[0]", "*nodes[1]")


def test_a_parser_that_builds_arguments_itself() -> None:
    model = poptorch.inferenceModel(Weighted(), quiet())
    model._args_parser = Swapping(Weighted())
    a, b = torch.ones(3), torch.full((3,), 2.0)
    assert model(b=b, a=a).tolist() == [5, 5, 5]
    assert model(b=a, a=b).tolist() == [4, 4, 4]  # 1 * 2 + 2 * 1


def test_dicts_go_in_whole() -> None:
    model = poptorch.inferenceModel(Dicts(), quiet())
    assert model({"b": torch.ones(2), "a": torch.zeros(2)}).tolist() == [-1, -1]


def test_batches_are_filled_up_to_the_compiled_size() -> None:
    net, twin = made()
    model = poptorch.inferenceModel(net.eval(), quiet())
    assert model._executable_inputs is None
    model(batch(4)[0])
    rest = batch(3)[0]
    compiled: Any = model._executable_inputs
    size = compiled.args[0].shape[0]
    padded = torch.cat([rest, rest.new_zeros(size - len(rest), 6)])
    torch.testing.assert_close(model(padded)[: len(rest)], twin.eval()(rest))
