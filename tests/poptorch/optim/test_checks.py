"""What may change about the optimiser of a compiled model, and what is said of it."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch

import poptorch
from poptorch import optim
from poptorch._optim.checks import AttributeChecks, check_replacement, log_lines
from poptorch._optim.description import Description, describe


def weights() -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.ones(2))]


def described(kind: Any, **arguments: Any) -> Description:
    return describe(kind(weights(), **arguments), is_automatic=False)


def test_variable_settings_change() -> None:
    old = described(optim.SGD, lr=0.1, momentum=0.0, loss_scaling=1.0)
    check_replacement(old, described(optim.SGD, lr=1, momentum=0.9, loss_scaling=8))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ({}, {"momentum": 0.9}, r"momentum \(default\) is constant: .* with 0"),
        ({}, {"loss_scaling": 2.0}, r"velocityScaling \(default\) is constant"),
        ({"momentum": 0.9}, {}, r"momentum \(default\) is variable .* but constant"),
        ({"max_grad_norm": 1.0}, {}, "max_grad_norm was 1.0 .* cannot become inf"),
        (
            {"momentum": 0.9},
            {"momentum": 0.9, "use_combined_accum": True},
            "use_combined_accum was False",
        ),
        (
            {"momentum": 0.9},
            {"momentum": 0.9, "velocity_accum_type": torch.float16},
            "velocity_accum_type",
        ),
    ],
    ids=str,
)
def test_what_is_compiled_in_does_not(
    old: dict[str, Any], new: dict[str, Any], message: str
) -> None:
    before, after = (described(optim.SGD, lr=0.1, **given) for given in (old, new))
    with pytest.raises(poptorch.Error, match=message):
        check_replacement(before, after)


def test_types_of_nothing_may_change() -> None:
    old = described(optim.SGD, lr=0.1)
    check_replacement(old, described(optim.SGD, lr=0.1, use_combined_accum=True))
    new = described(optim.SGD, lr=0.1, velocity_accum_type=torch.float16)
    check_replacement(old, new)


def test_kinds_and_groups_stay() -> None:
    old = described(optim.Adam, lr=0.1)
    with pytest.raises(poptorch.Error, match=r"type was Adam .* cannot become AdamW"):
        check_replacement(old, described(optim.AdamW, lr=0.1))
    groups = [{"params": weights()}, {"params": weights()}]
    new = describe(optim.Adam(groups, lr=0.1), is_automatic=False)
    with pytest.raises(poptorch.Error, match="number of parameter groups was 1"):
        check_replacement(old, new)


def test_lines_for_the_whole_and_for_groups() -> None:
    sgd = described(optim.SGD, lr=0.01, loss_scaling=2.0)
    graph, group = log_lines(sgd, (("w",),))
    assert graph == (
        "Updating graph optimizer with SGD2, defaultDampening=0 (const), "
        "defaultLearningRate=0.01, defaultMomentum=0 (const), "
        "defaultVelocityScaling=2, defaultWeightDecay=0 (const), lossScaling=2, "
        "nesterov=0 (const), accumType=float32, firstOrderMomentumAccumType=float32, "
        "secondOrderMomentumAccumType=float32, useTfVariant=0, maxGradNorm=inf"
    )
    assert group.startswith("Updating group 0 optimizer with SGD2, dampening=0 (const)")
    assert group.endswith("for [w]")


@pytest.fixture
def checked(caplog: pytest.LogCaptureFixture) -> Any:
    """A function that checks an optimiser again and gives what is said."""
    caplog.set_level(logging.DEBUG, logger="poptorch::python")

    def check(checks: AttributeChecks, optimizer: Any) -> str:
        caplog.clear()
        checks.check(optimizer, "SGD2")
        return caplog.text

    return check


def test_attributes_there_from_the_start_are_expected(checked: Any) -> None:
    checks, sgd = AttributeChecks(False), optim.SGD(weights(), lr=0.1)
    sgd.__dict__["note"], sgd.param_groups[0]["initial_lr"] = "mine", 0.1
    assert checked(checks, sgd) == checked(checks, sgd) == ""


def test_attributes_added_later_are_told_once(checked: Any) -> None:
    checks, sgd = AttributeChecks(False), optim.SGD(weights(), lr=0.1)
    checked(checks, sgd)
    sgd.__dict__["lr"], sgd.param_groups[0]["initial_lr"] = 0.5, 0.1
    said = checked(checks, sgd)
    assert "Ignoring unexpected optimizer attribute in SGD2 optimizer: ['lr']" in said
    assert "Ignoring unexpected group 0 attribute" in said
    assert "WARNING" in said
    assert checked(checks, sgd) == ""


def test_relaxed_checks_are_for_debugging(checked: Any) -> None:
    checks, sgd = AttributeChecks(True), optim.SGD(weights(), lr=0.1)
    checked(checks, sgd)
    sgd.__dict__["lr"] = 0.5
    said = checked(checks, sgd)
    assert "DEBUG" in said
    assert "WARNING" not in said


def test_schedulers_and_other_optimisers_are_no_surprise(checked: Any) -> None:
    checks = AttributeChecks(False)
    checked(checks, torch.optim.SGD(weights(), lr=0.1))
    poptorchs = optim.SGD(weights(), lr=0.1, use_combined_accum=True)
    assert checked(checks, poptorchs) == ""
    torch.optim.lr_scheduler.ExponentialLR(poptorchs, 0.5)
    assert "optimizer attribute" not in checked(checks, poptorchs)
