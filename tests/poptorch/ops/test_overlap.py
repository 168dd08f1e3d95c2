"""Marks for overlapping host transfers: where they may stand, what they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import popple
import poptorch
from tests.poptorch.models import options
from tests.poptorch.running import compiled

X = torch.ones(2)
LOOP = poptorch.OverlapMode.OverlapAccumulationLoop
NONE = poptorch.OverlapMode.NoOverlap


def fitting_options() -> poptorch.Options:
    opts = options().setExecutionStrategy(poptorch.ShardedExecution())
    opts.TensorLocations.numIOTiles(32)
    return opts


def overlapped(x: Tensor, mode: Any = LOOP) -> Tensor:
    y = poptorch.set_overlap_for_input(x, mode) + 1
    return poptorch.set_overlap_for_output(y, mode)


def test_values_are_the_same() -> None:
    assert torch.equal(compiled(overlapped, fitting_options())(X), X + 1)
    assert torch.equal(overlapped(X), X + 1)


def test_nested_inputs_and_outputs_keep_their_structure() -> None:
    def forward(xs: list[Tensor]) -> dict[str, Tensor]:
        a, b = poptorch.set_overlap_for_input(xs, LOOP)
        return poptorch.set_overlap_for_output({"sum": a + b}, LOOP)

    result = compiled(forward, fitting_options())([X, X])
    assert torch.equal(result["sum"], 2 * X)


def used_twice(x: Tensor) -> tuple[Tensor, Tensor]:
    return x + 1, poptorch.set_overlap_for_input(x, LOOP) * 2


def inner_input(x: Tensor) -> Tensor:
    return poptorch.set_overlap_for_input(x + 1, LOOP) * 2


def inner_output(x: Tensor) -> Tensor:
    return poptorch.set_overlap_for_output(x + 1, LOOP) * 2


def returned_twice(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x + 1
    return y, poptorch.set_overlap_for_output(y, LOOP)


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (used_twice, "Input 0 of the model is used beside"),
        (inner_input, "takes inputs of the model only"),
        (inner_output, "takes outputs of the model only"),
        (returned_twice, "is returned twice"),
    ],
)
def test_a_mark_in_the_wrong_place_is_refused(
    forward: Callable[..., Any], message: str
) -> None:
    with pytest.raises(poptorch.Error, match=message):
        compiled(forward, fitting_options())(X)


def with_output(mode: poptorch.OutputMode) -> poptorch.Options:
    return fitting_options().outputMode(mode)


@pytest.mark.parametrize(
    ("opts", "message"),
    [
        (lambda: options(), "use poptorch.ShardedExecution"),
        (
            lambda: options().setExecutionStrategy(poptorch.ShardedExecution()),
            "at least 32",
        ),
        (lambda: with_output(poptorch.OutputMode.Final), "All or Sum, not Final"),
    ],
)
def test_options_must_go_along(
    opts: Callable[[], poptorch.Options], message: str
) -> None:
    with pytest.raises(poptorch.Error, match=message):
        compiled(overlapped, opts())(X)


def test_no_overlap_asks_for_nothing() -> None:
    assert torch.equal(compiled(lambda x: overlapped(x, NONE))(X), X + 1)


def test_arguments_are_checked() -> None:
    with pytest.raises(AssertionError, match="OverlapMode"):
        poptorch.set_overlap_for_input(X, "all")  # pyright: ignore
    with pytest.raises(poptorch.Error, match="no tensor to overlap in int"):
        poptorch.set_overlap_for_output(3, LOOP)


def modelled_cycles(mode: poptorch.OverlapMode) -> int:
    opts = fitting_options().deviceIterations(8)
    model = compiled(lambda x: overlapped(x, mode), opts)
    model.compile(torch.ones(8, 4096))
    return popple.modelled(model).simulation.cost.cycles


def test_overlap_hides_host_traffic_in_the_model() -> None:
    waiting = modelled_cycles(NONE)
    everywhere = poptorch.OverlapMode.OverlapDeviceIterationLoop
    assert modelled_cycles(everywhere) < waiting
