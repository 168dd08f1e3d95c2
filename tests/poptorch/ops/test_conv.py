"""MultiConv: values, options and misuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from popple.graph import DType
from tests.poptorch.models import options

X = torch.rand(1, 1, 8, 8)


class Pair(nn.Module):
    """Two convolutions and an op between them, in one MultiConv."""

    def __init__(self, multi_conv: poptorch.MultiConv) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 2, 3)
        self.second = nn.Conv2d(1, 2, 3, bias=False)
        self.multi_conv = multi_conv

    def forward(self, x: Tensor) -> Tensor:
        with self.multi_conv:
            return self.first(x) + self.second(x.abs())


class Inside(nn.Module):
    """A convolution and a function of it and the input."""

    def __init__(self, function: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3)
        self._function = function

    def forward(self, x: Tensor) -> Tensor:
        return self._function(self.conv, x)


def compiled(module: nn.Module) -> poptorch.PoplarExecutor:
    return poptorch.inferenceModel(module, options())


def test_values_are_those_of_the_convolutions() -> None:
    module = Pair(poptorch.MultiConv())
    torch.testing.assert_close(compiled(module)(X), module(X))


@pytest.mark.parametrize(
    ("proportions", "expected"), [(0.2, [0.2, 0.2]), ([0.2, 0.1], [0.2, 0.1])]
)
def test_options_are_for_all_convolutions_or_for_each(
    proportions: Any, expected: list[float]
) -> None:
    wishes = poptorch.MultiConv().availableMemoryProportions(proportions)
    model = compiled(Pair(wishes.partialsTypes(torch.half)))
    model.compile(X)
    convs = [op for op in model.__popple__().graph.ops if op.kind == "conv"]
    assert [op.notes.memory_proportion for op in convs] == expected
    assert {op.notes.partials for op in convs} == {DType.F16}


def test_options_of_the_group_are_on_every_convolution() -> None:
    wishes = poptorch.MultiConv().perConvReservedTiles(9).cycleBackOff(0.5)
    model = compiled(Pair(wishes))
    model.compile(X)
    convs = [op for op in model.__popple__().graph.ops if op.kind == "conv"]
    (group,) = {op.notes.multi_conv for op in convs}
    assert group is not None
    assert (group.reserved_tiles, group.cycle_back_off) == (9, 0.5)


def test_there_must_be_a_value_for_each_convolution() -> None:
    wishes = poptorch.MultiConv().availableMemoryProportions([0.2, 0.1, 0.3])
    with pytest.raises(poptorch.Error, match="2 convolutions and 3 values"):
        compiled(Pair(wishes))(X)


def nested(conv: nn.Module, x: Tensor) -> Tensor:
    with poptorch.MultiConv(), poptorch.MultiConv():
        return conv(x)


def empty(conv: nn.Module, x: Tensor) -> Tensor:
    with poptorch.MultiConv():
        x = x.abs()
    return conv(x)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (nested, "Nested poptorch.MultiConv is not supported"),
        (empty, "Unexpected end_multi_conv: there is no convolution"),
    ],
)
def test_misuse_is_refused_when_compiling_only(
    function: Callable[..., Tensor], message: str
) -> None:
    module = Inside(function)
    module(X)
    with pytest.raises(poptorch.Error, match=message):
        compiled(module)(X)
    assert compiled(Pair(poptorch.MultiConv()))(X).shape == (1, 2, 6, 6)


def test_setters_return_the_object_and_check_their_values() -> None:
    multi_conv: Any = poptorch.MultiConv()
    assert multi_conv.planType(poptorch.MultiConvPlanType.Serial) is multi_conv
    assert multi_conv.perConvReservedTiles(64) is multi_conv
    assert multi_conv.cycleBackOff(0.1) is multi_conv
    assert multi_conv.enableConvDithering([True, False]) is multi_conv
    with pytest.raises(ValueError, match="Invalid partials types"):
        multi_conv.partialsTypes(torch.int32)
    with pytest.raises(ValueError, match="list of bools"):
        multi_conv.enableConvDithering("yes")
    for setter, value in (
        (multi_conv.planType, 1),
        (multi_conv.perConvReservedTiles, 1.5),
        (multi_conv.cycleBackOff, 1),
        (multi_conv.availableMemoryProportions, []),
    ):
        with pytest.raises(AssertionError):
            setter(value)
