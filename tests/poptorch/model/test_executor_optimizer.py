"""Optimisers of a training model: which ones, and how they change."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import poptorch
from poptorch import optim
from tests.poptorch.models import Scale, options

X = torch.ones(2)


def train(optimizer: Any = None) -> tuple[Scale, poptorch.PoplarExecutor]:
    module = Scale()
    made = None if optimizer is None else optimizer(module.parameters())
    return module, poptorch.trainingModel(module, options(), made)


def test_set_optimizer_changes_the_rate() -> None:
    module, model = train(lambda ws: optim.SGD(ws, lr=1.0))
    model(X)
    model.setOptimizer(optim.SGD(module.parameters(), lr=0.1))
    model(X)
    torch.testing.assert_close(module.weight.detach(), torch.full((2,), 0.45))


def test_a_scheduler_does_nothing_until_set_optimizer() -> None:
    module = Scale()
    sgd = optim.SGD(module.parameters(), lr=1.0)
    model = poptorch.trainingModel(module, options(), sgd)
    scheduler = torch.optim.lr_scheduler.LambdaLR(sgd, lambda epoch: 1.0 - epoch)
    model(X)
    with pytest.warns(UserWarning, match="lr_scheduler"):
        scheduler.step()
    model(X)
    assert module.weight.tolist() == [0, 0]
    model.setOptimizer(sgd)
    model(X)
    assert module.weight.tolist() == [0, 0]


def test_momentum_keeps_its_velocity_over_set_optimizer() -> None:
    module, model = train(lambda ws: optim.SGD(ws, lr=1.0, momentum=0.5))
    model(X)
    model.setOptimizer(optim.SGD(module.parameters(), lr=1.0, momentum=0.5))
    model(X)
    # Steps of 0.5 and 0.5 + 0.25.
    assert module.weight.tolist() == [-0.25, -0.25]


def test_momentum_may_begin_later() -> None:
    module, model = train(lambda ws: optim.SGD(ws, lr=1.0, momentum=0.0))
    model(X)
    model.setOptimizer(optim.SGD(module.parameters(), lr=1.0, momentum=0.5))
    model(X)
    # The velocity has followed: steps of 0.5 and 0.5 + 0.25.
    assert module.weight.tolist() == [-0.25, -0.25]


def test_another_kind_is_refused_and_the_old_one_stays() -> None:
    module, model = train(lambda ws: optim.SGD(ws, lr=1.0))
    model(X)
    with pytest.raises(poptorch.Error, match=r"was SGD .* cannot become Adam"):
        model.setOptimizer(optim.Adam(module.parameters(), lr=1.0))
    model(X)
    assert module.weight.tolist() == [0, 0]


def test_before_compiling_another_kind_is_fine() -> None:
    module, model = train(lambda ws: optim.SGD(ws, lr=1.0))
    model.setOptimizer(optim.Adam(module.parameters(), lr=1.0))
    model(X)
    torch.testing.assert_close(module.weight.detach(), torch.zeros(2))


def test_an_inference_model_has_no_optimizer() -> None:
    model = poptorch.inferenceModel(Scale(), options())
    with pytest.raises(AssertionError, match="no optimizer"):
        model.setOptimizer(torch.optim.SGD([X], lr=0.1))


def test_unsupported_optimizers_are_refused_when_wrapping() -> None:
    module = Scale()
    with pytest.raises(AssertionError, match="Unsupported optimizer type Adagrad"):
        train(lambda ws: torch.optim.Adagrad(ws))
    with pytest.raises(ValueError, match="amsgrad"):
        poptorch.trainingModel(
            module, options(), torch.optim.Adam(module.parameters(), amsgrad=True)
        )
    assert type(module) is Scale


def test_a_bound_on_the_norm_that_is_no_number_is_refused() -> None:
    _, model = train(lambda ws: optim.SGD(ws, lr=1.0, max_grad_norm=float("nan")))
    with pytest.raises(poptorch.Error, match="max_grad_norm must be a positive number"):
        model(X)


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    """Warnings that PopTorch logs."""
    records: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: records.append(record.getMessage())
    logger = logging.getLogger("poptorch::python")
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


def test_code_of_a_subclass_does_not_run_and_that_is_said(warnings: list[str]) -> None:
    class Mine(torch.optim.SGD):
        pass

    train(lambda ws: Mine(ws, lr=0.1))
    (warning,) = warnings
    assert "Poptorch does not run Python optimizer code" in warning


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
@pytest.mark.parametrize("package", [torch.optim, optim])
def test_optimizers_of_both_packages_are_known(
    package: Any, name: str, warnings: list[str]
) -> None:
    train(lambda ws: getattr(package, name)(ws, lr=0.1))
    assert warnings == []


def test_weight_decay_of_a_decoupled_adam_is_adamws() -> None:
    def run(make: Any) -> list[float]:
        module, model = train(make)
        model(X)
        return module.weight.tolist()

    decoupled = {"lr": 0.1, "weight_decay": 0.5, "decoupled_weight_decay": True}
    adamw = run(lambda ws: torch.optim.AdamW(ws, lr=0.1, weight_decay=0.5))
    assert run(lambda ws: torch.optim.Adam(ws, **decoupled)) == adamw


def test_bias_correction_of_adamw_has_no_effect() -> None:
    results = []
    for correction in (True, False):
        module, model = train(
            lambda ws, c=correction: optim.AdamW(ws, lr=0.1, bias_correction=c)
        )
        model(X)
        results.append(module.weight.tolist())
    assert results[0] == results[1]


def test_lamb_trains_as_on_the_cpu() -> None:
    module, model = train(lambda ws: optim.LAMB(ws, lr=0.1))
    reference = Scale()
    lamb = optim.LAMB(reference.parameters(), lr=0.1)
    for _ in range(3):
        model(X)
        lamb.zero_grad()
        reference(X).backward()
        lamb.step()
    torch.testing.assert_close(module.weight, reference.weight, rtol=1e-6, atol=1e-8)
