"""What a traced step overwrites, and which of its outputs never change."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from popple.capture.torch import (
    constant_outputs,
    find_overwritten,
    overwritten_arguments,
)
from tests.capture.torch.tracing import Function, trace

CONSTANT = torch.zeros(3)


def overwritten(module: object, *inputs: Tensor) -> list[int]:
    return overwritten_arguments(trace(module, *inputs).graph_module)  # type: ignore[arg-type]


def test_a_pure_function_overwrites_nothing() -> None:
    assert overwritten(lambda x: x.clone().add_(1), torch.ones(3)) == []


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: y.add_(x),
        lambda x, y: y[0].mul_(2),
        lambda x, y: y.view(3, 1).copy_(x.view(3, 1)),
        lambda x, y: torch.add(x, x, out=y),
        lambda x, y: torch._foreach_add_([y], 1.0),
    ],
    ids=["in place", "part", "view", "out", "list"],
)
def test_writes_are_found_through_views_and_lists(write: object) -> None:
    def forward(x: Tensor, y: Tensor) -> Tensor:
        write(x, y)  # type: ignore[operator]
        return x + 1

    assert overwritten(forward, torch.ones(3), torch.ones(3)) == [1]


def test_batch_norm_overwrites_its_statistics_when_training() -> None:
    layer = nn.BatchNorm1d(3)
    x = torch.randn(4, 3)
    # weight, bias, running_mean, running_var, num_batches_tracked, input
    assert overwritten(layer, x) == [2, 3, 4]
    assert overwritten(layer.eval(), x) == []


def test_constants_can_be_overwritten_too() -> None:
    step = trace(Function(lambda x: CONSTANT.add_(x) * 1), torch.ones(3))
    assert {node.op for node in find_overwritten(step.graph_module)} == {"get_attr"}
    assert CONSTANT.tolist() == [0, 0, 0]


def _written_later(x: Tensor) -> Tensor:
    made = torch.zeros(3)
    made[0] = x.sum()
    return made


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: (x, torch.ones(3), CONSTANT * 2), {1, 2}),
        (lambda x: torch.rand(3), set()),
        (lambda x: torch.ones(3).mul_(2) * x, set()),
        (_written_later, set()),
        (lambda x: _written_later(x) * 2, set()),
    ],
    ids=["constants", "random", "input", "written to", "made of written"],
)
def test_constant_outputs(function: object, expected: set[int]) -> None:
    step = trace(function, torch.ones(3))  # type: ignore[arg-type]
    assert constant_outputs(step) == expected
