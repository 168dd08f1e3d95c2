"""CPU: functions of the host inside a compiled model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import options
from tests.poptorch.running import Function, compiled, on_ipu

X = torch.tensor([1.0, 2.0, 3.0])


def test_the_function_runs_on_real_data_in_every_run() -> None:
    seen: list[list[float]] = []

    def looked_at(x: Tensor) -> Tensor:
        seen.append(x.tolist())
        return torch.from_numpy(np.flip(x.numpy()).copy())

    cpu = poptorch.CPU(looked_at, "flip")
    model = compiled(lambda x: cpu(x) + 1)
    assert torch.equal(model(X), X.flip(0) + 1)
    assert torch.equal(model(X * 2), 2 * X.flip(0) + 1)
    # Once with zeros for the shapes, then once in each run.
    assert seen == [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]


def test_several_results_are_a_list() -> None:
    cpu = poptorch.CPU(lambda x: (x.sum(), x > 1), "pair")
    total, is_large = on_ipu(lambda x: cpu(x), X)
    assert total == 6
    assert is_large.tolist() == [False, True, True]


def test_arguments_by_name_are_passed_on() -> None:
    cpu = poptorch.CPU(lambda x, factor: x * factor, "scale")
    assert torch.equal(on_ipu(lambda x: cpu(x, factor=3), X), 3 * X)


def test_the_function_may_use_the_weights_of_the_model() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.tensor([2.0]))
            self.cpu: Any = poptorch.CPU(self.scaled, "scaled")

        def scaled(self, x: Tensor) -> Tensor:
            return x * float(self.scale)

        def forward(self, x: Tensor) -> Tensor:
            return self.cpu(x) - self.scale

    assert torch.equal(poptorch.inferenceModel(Model(), options())(X), 2 * X - 2)


def test_a_model_is_not_running_on_the_ipu_inside() -> None:
    seen: list[bool] = []
    cpu = poptorch.CPU(lambda x: seen.append(poptorch.isRunningOnIpu()) or x, "ask")
    on_ipu(lambda x: cpu(x) if poptorch.isRunningOnIpu() else x, X)
    assert seen == [False, False]


def test_on_the_cpu_it_is_the_function() -> None:
    assert torch.equal(poptorch.CPU(torch.neg, "neg")(X), -X)


def test_other_shapes_than_when_compiled_are_refused() -> None:
    shapes = iter([(3,), (2,)])
    cpu = poptorch.CPU(lambda x: torch.zeros(next(shapes)), "moody")
    with pytest.raises(poptorch.Error, match=r"moody returned .* \[\(2,\)\]"):
        on_ipu(lambda x: cpu(x), X)


@pytest.mark.parametrize(
    ("function", "argument"), [(torch.neg, 3.0), (lambda x: "text", X)]
)
def test_only_tensors_go_in_and_out(function: Any, argument: Any) -> None:
    cpu = poptorch.CPU(function, "op")
    with pytest.raises(poptorch.Error, match=r"must be a torch\.Tensor"):
        on_ipu(lambda x: cpu(argument if argument is not X else x) + x, X)


def test_training_through_it_is_refused() -> None:
    cpu = poptorch.CPU(torch.neg, "neg")
    loss = Function(lambda x: poptorch.identity_loss(cpu(x), "sum"))
    model = poptorch.trainingModel(nn.Sequential(nn.Linear(3, 3), loss), options())
    with pytest.raises(poptorch.Error, match="neg has no gradient"):
        model(X.view(1, 3))


def test_a_module_on_the_host_is_not_trained() -> None:
    layer = nn.Linear(2, 2)
    poptorch.CPU(layer, "linear")
    assert not any(p.requires_grad for p in layer.parameters())


def test_it_can_be_driven_by_hand() -> None:
    cpu = poptorch.CPU(lambda x: x * 2, "double")
    with pytest.raises(poptorch.Error, match="has not been called"):
        cpu.registerPersistentData()
    cpu(X)
    cpu.registerPersistentData()
    assert cpu.inputs is not None
    assert cpu.outputs is not None
    cpu.inputs[0].copy_(X)
    cpu.execute()
    assert torch.equal(cpu.outputs[0], 2 * X)
