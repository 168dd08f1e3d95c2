"""Functions that return what they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import options
from tests.poptorch.running import Function, compiled, on_ipu

X = torch.arange(6.0).view(2, 3)
Mode = poptorch.MatMulSerializationMode

IDENTITIES: list[Callable[[Tensor], Tensor]] = [
    poptorch.nop,
    lambda x: poptorch.set_available_memory(x, 0.3),
    poptorch.recomputationCheckpoint,
]


@pytest.mark.parametrize("identity", IDENTITIES)
def test_the_values_are_the_same(identity: Callable[[Tensor], Tensor]) -> None:
    assert identity(X) is X
    assert torch.equal(on_ipu(lambda x: identity(x) * 2, X), X * 2)


@pytest.mark.parametrize("identity", IDENTITIES[:2])
def test_only_tensors_are_taken(identity: Callable[[Any], Any]) -> None:
    with pytest.raises(poptorch.Error, match=r"must be a torch.Tensor, not int"):
        identity(3)


def test_writing_to_the_result_leaves_the_argument_alone() -> None:
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 1
        return y, poptorch.nop(y).add_(1)

    first, second = on_ipu(forward, X)
    assert torch.equal(second, first + 1)


def test_training_goes_through() -> None:
    layer = nn.Linear(3, 1, bias=False)
    before = layer.weight.detach().clone()
    model = poptorch.trainingModel(
        nn.Sequential(
            layer,
            Function(poptorch.nop),
            Function(lambda x: poptorch.identity_loss(x, "sum")),
        ),
        options(),
        poptorch.optim.SGD(layer.parameters(), lr=1.0),
    )
    model(X)
    # The gradient of the sum is the sum of the inputs.
    torch.testing.assert_close(layer.weight.detach(), before - X.sum(0, keepdim=True))


@pytest.mark.parametrize("proportion", [-0.1, 1.5])
def test_a_proportion_is_from_0_to_1(proportion: float) -> None:
    with pytest.raises(poptorch.Error, match="from 0 to 1"):
        poptorch.set_available_memory(X, proportion)


def test_less_memory_costs_more_cycles() -> None:
    def cycles(proportion: float) -> int:
        weight = torch.zeros(512, 2048)

        def forward(x: Tensor, w: Tensor) -> Tensor:
            return poptorch.set_available_memory(x @ w, proportion)

        model = compiled(forward)
        model.compile(torch.zeros(512, 512), weight)
        return model.__popple__().simulation.cost.cycles

    assert cycles(0.02) > cycles(0.6)


def test_checkpoints_keep_the_structure() -> None:
    checkpoint = poptorch.recomputationCheckpoint
    assert isinstance(checkpoint([X, X]), list)
    assert isinstance(checkpoint((X,)), tuple)
    assert len(checkpoint(X, X)) == 2
    with pytest.raises(ValueError, match="takes tensors"):
        checkpoint(X, "x")


@pytest.mark.parametrize("mode", list(Mode))
def test_a_serialised_product_is_the_product(mode: Mode) -> None:
    other = torch.arange(12.0).view(3, 4)
    product = on_ipu(lambda a, b: poptorch.serializedMatMul(a, b, mode, 2), X, other)
    torch.testing.assert_close(product, X @ other)


@pytest.mark.parametrize("arguments", [("rows", 2), (Mode.ReducingDim, "2")])
def test_the_arguments_of_a_serialised_product_are_checked(arguments: Any) -> None:
    with pytest.raises(AssertionError):
        poptorch.serializedMatMul(X, X.T, *arguments)
