"""The life of a model: wrapped, compiled, attached, detached, destroyed."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from poptorch import ConnectionType
from tests.poptorch.models import Scale, options

X = torch.ones(2)
NOT_COMPILED = "Model has not been compiled or has been destroyed."


def infer(opts: poptorch.Options | None = None) -> poptorch.PoplarExecutor:
    return poptorch.inferenceModel(Scale(), opts or options())


def test_the_first_call_compiles_and_attaches() -> None:
    model = infer()
    assert (model.isCompiled(), model.isAttachedToDevice()) == (False, False)
    model(X)
    assert (model.isCompiled(), model.isAttachedToDevice()) == (True, True)


def test_compile_compiles_without_running() -> None:
    runs: list[int] = []

    class Counts(Scale):
        def forward(self, x: Tensor) -> Tensor:
            runs.append(1)
            return super().forward(x)

    model = poptorch.inferenceModel(Counts(), options())
    model.compile(X)
    assert model.isCompiled()
    for _ in range(3):
        model(X)
    assert runs == [1]  # Python runs while compiling, and never again


def test_compiling_again_only_warns(caplog: pytest.LogCaptureFixture) -> None:
    model = infer()
    model.compile(X)
    with caplog.at_level(logging.WARNING):
        model.compile(torch.ones(3))
    assert model(X).item() == 1


@pytest.mark.parametrize(
    "method",
    [
        "attachToDevice",
        "detachFromDevice",
        "copyWeightsToHost",
        "copyWeightsToDevice",
    ],
)
def test_an_uncompiled_model_says_so(method: str) -> None:
    model = infer()
    with pytest.raises(poptorch.Error, match=NOT_COMPILED):
        getattr(model, method)()
    model(X)
    model.destroy()
    with pytest.raises(poptorch.Error, match=NOT_COMPILED):
        getattr(model, method)()


def test_attached_twice_or_detached_twice() -> None:
    model = infer()
    model(X)
    with pytest.raises(poptorch.Error, match="Device is already attached"):
        model.attachToDevice()
    model.detachFromDevice()
    with pytest.raises(poptorch.Error, match="Device is not attached"):
        model.detachFromDevice()
    model.attachToDevice()
    assert model.isAttachedToDevice()


def test_a_call_attaches_by_itself() -> None:
    model = infer()
    model(X)
    model.detachFromDevice()
    assert model(X).item() == 1
    assert model.isAttachedToDevice()


def test_on_demand_attaches_at_the_call() -> None:
    model = infer(options().connectionType(ConnectionType.OnDemand))
    model.compile(X)
    assert not model.isAttachedToDevice()
    model(X)
    assert model.isAttachedToDevice()


def test_never_only_compiles() -> None:
    model = infer(options().connectionType(ConnectionType.Never))
    model.compile(X)
    assert model.isCompiled()
    for use in (lambda: model(X), model.attachToDevice):
        with pytest.raises(AssertionError, match="offline device"):
            use()


def test_destroy_before_the_first_run_leaves_the_module_wrapped() -> None:
    module = Scale()
    model = poptorch.trainingModel(module, options())
    model.destroy()
    assert type(module).__name__ == "PoptorchScale"


def test_destroy_gives_the_module_back() -> None:
    module = Scale()
    model = poptorch.trainingModel(module, options())
    model(X)
    model.destroy()
    assert type(module) is Scale
    assert type(module.weight) is nn.Parameter
    assert not model.isCompiled()
    assert not model.isAttachedToDevice()
    model.destroy()


def test_the_module_can_destroy_its_model() -> None:
    module: Any = Scale()
    poptorch.trainingModel(module, options())(X)
    module.destroy()
    assert type(module) is Scale


def test_a_destroyed_model_compiles_anew() -> None:
    module = Scale()
    sgd = poptorch.optim.SGD(module.parameters(), lr=1.0)
    model = poptorch.trainingModel(module, options(), sgd)
    model(X)
    model.destroy()
    model(torch.ones(4, 2))  # another shape
    assert type(module).__name__ == "PoptorchScale"
    assert module.weight.tolist() == [0, 0]


def test_a_destroyed_module_can_be_wrapped_again() -> None:
    module = Scale()
    model = poptorch.trainingModel(module, options())
    with pytest.raises(RuntimeError, match="already wrapped"):
        poptorch.trainingModel(module, options())
    model(X)
    model.destroy()
    poptorch.trainingModel(module, options())(X)


def test_a_failed_compilation_can_be_tried_again() -> None:
    module = Scale()
    model = poptorch.inferenceModel(module, options())
    with pytest.raises(RuntimeError):
        model(torch.ones(3))
    assert not model.isCompiled()
    assert not poptorch.isRunningOnIpu()
    assert model(X).item() == 1


def test_running_on_ipu_is_true_while_tracing_only() -> None:
    seen: list[bool] = []

    class Asks(Scale):
        def forward(self, x: Tensor) -> Tensor:
            seen.append(poptorch.isRunningOnIpu())
            return super().forward(x)

    module = Asks()
    module(X)
    poptorch.inferenceModel(module, options())(X)
    assert seen == [False, True]
    assert not poptorch.isRunningOnIpu()


def test_options_are_frozen_and_the_executor_keeps_its_own() -> None:
    opts = poptorch.Options()
    model = poptorch.inferenceModel(Scale(), opts)
    with pytest.raises(AttributeError, match="frozen"):
        opts.deviceIterations(2)
    assert model.options is not opts
    assert model.options.output_mode is poptorch.OutputMode.All
    assert opts.output_mode is poptorch.OutputMode.Default


def test_options_of_another_type_are_refused() -> None:
    with pytest.raises(poptorch.Error, match=r"must be poptorch\.Options, not dict"):
        poptorch.inferenceModel(Scale(), {})  # type: ignore[arg-type]


def test_a_model_must_be_a_module() -> None:
    with pytest.raises(poptorch.Error, match=r"must be a torch\.nn\.Module"):
        poptorch.inferenceModel(lambda x: x)  # type: ignore[arg-type]


def test_train_and_eval_are_taken_when_traced() -> None:
    class Mode(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1 if self.training else x

    module = Mode()
    model = poptorch.inferenceModel(module, options())
    module.eval()  # does not reach the copy that is traced
    assert model(X).tolist() == [2, 2]
    assert poptorch.inferenceModel(module, options())(X).tolist() == [1, 1]
    inner = nn.Sequential(Mode())
    model = poptorch.inferenceModel(inner, options())
    inner.eval()  # reaches the children, which are shared
    assert model(X).tolist() == [1, 1]


def test_what_the_executor_does_not_know_is_the_models() -> None:
    module: Any = Scale()
    module.note = "hello"
    model = poptorch.inferenceModel(module, options())
    assert model.note == "hello"
    assert model.model is not module
    with pytest.raises(AttributeError, match="missing"):
        _ = model.missing
    assert poptorch.trainingModel(module, options()).model is module


def test_synthetic_data_does_not_depend_on_the_call() -> None:
    opts = options()
    opts.enableSyntheticData(True)
    model = infer(opts)
    assert model(X).item() == model(100 * X).item() != 1
