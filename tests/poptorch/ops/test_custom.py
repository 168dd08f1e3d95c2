"""custom_op: Python functions in the place of compiled operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import options
from tests.poptorch.running import on_ipu

X = torch.tensor([1.0, -2.0])


def run(
    *inputs: Tensor, name: str = "Cube", attributes: Any = None, outputs: int = 1
) -> list[Tensor]:
    return poptorch.custom_op(
        inputs, name, "test.popple", 1, [inputs[0]] * outputs, attributes
    )


@poptorch.registerCustomOp("Cube", "test.popple")
def cube(x: Tensor) -> Tensor:
    return x**3


@poptorch.registerCustomOp("Scale", "test.popple")
def scale(x: Tensor, factor: float, offset: int = 0) -> tuple[Tensor, Tensor]:
    return x * factor, x + offset


def test_the_registered_function_is_the_op() -> None:
    (result,) = on_ipu(run, X)
    assert torch.equal(result, X**3)


def test_attributes_are_passed_by_name() -> None:
    wishes = {"factor": 0.5, "offset": 2}
    scaled, moved = on_ipu(
        lambda x: run(x, name="Scale", attributes=wishes, outputs=2), X
    )
    assert torch.equal(scaled, X / 2)
    assert torch.equal(moved, X + 2)


def test_it_is_differentiated_like_other_code() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(X.clone())

        def forward(self) -> Tensor:
            return poptorch.identity_loss(run(self.weight)[0], "sum")

    module = Model()
    optimizer = poptorch.optim.SGD(module.parameters(), lr=0.1)
    poptorch.trainingModel(module, options(), optimizer)()
    torch.testing.assert_close(module.weight.detach(), X - 0.1 * 3 * X**2)


def test_on_the_cpu_results_are_zeros() -> None:
    assert torch.equal(run(X)[0], torch.zeros(2))


def test_an_op_without_a_function_is_named() -> None:
    with pytest.raises(
        poptorch.Error, match=r"Cub .*test\.popple.*mean test\.popple\.Cube"
    ):
        on_ipu(lambda x: run(x, name="Cub"), X)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: (x, x), "returned 2 tensors, but there are 1"),
        (lambda x: x.sum(), r"is torch.float32 \(\), but its example"),
        (lambda x: x.int(), "is torch.int32"),
        (lambda x: 3, "must be a torch.Tensor, not int"),
    ],
)
def test_results_must_be_like_the_examples(
    function: Callable[..., Any], message: str
) -> None:
    poptorch.registerCustomOp("Wrong", "test.popple")(function)
    with pytest.raises(poptorch.Error, match=message):
        on_ipu(lambda x: run(x, name="Wrong"), X)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({1: 2}, "1 of a custom op is no string"),
        ({"a": None}, "attribute a must be a float"),
        ({"a": [1, "b"]}, "attribute a are of several types"),
        ({"a": "é"}, "é contains non-ASCII characters"),
        ({"é": 1}, "é contains non-ASCII characters"),
    ],
)
def test_attributes_are_checked(attributes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(X, attributes=attributes)


@pytest.mark.parametrize(("number", "side"), [(-1e300, "low"), (1e300, "high")])
def test_floats_must_fit_the_device(number: float, side: str) -> None:
    with pytest.raises(poptorch.Error, match=f"is too {side} for a Popart float"):
        on_ipu(lambda x: run(x, attributes={"a": [1.0, number]}), X)
