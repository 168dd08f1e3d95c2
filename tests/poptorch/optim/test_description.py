"""What the device is told of an optimiser: numbers, constant or variable."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from poptorch import optim
from poptorch._optim.description import (
    Description,
    Setting,
    check_optimizer,
    describe,
)
from poptorch._optim.rule import held_slots, make_rule, names_of_groups

WEIGHT = torch.nn.Parameter(torch.ones(2))
ALL = [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.LAMB]


def described(kind: Any, **arguments: Any) -> Description:
    return describe(kind([WEIGHT], **arguments), is_automatic=False)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_torchs_defaults_and_poptorchs_are_one(name: str) -> None:
    torchs = described(getattr(torch.optim, name), lr=0.1)
    assert described(getattr(optim, name), lr=0.1) == torchs


def test_settings_print_as_users_read_them() -> None:
    assert str(Setting(2.0, False)) == "2"
    assert str(Setting(0.01, True)) == "0.01 (const)"
    assert str(Setting(1e-8, True)) == "1e-08 (const)"


@pytest.mark.parametrize("kind", ALL)
def test_what_was_given_is_variable(kind: Any) -> None:
    (group,) = described(kind, lr=0.1, weight_decay=0.5).groups
    assert group["weightDecay"] == Setting(0.5, False)
    assert not group["learningRate"].is_const
    constants = {name for name, setting in group.items() if setting.is_const}
    assert constants == group.keys() - {"weightDecay", "learningRate"}


@pytest.mark.parametrize(
    ("given", "name", "is_const"),
    [
        ({}, "momentum", True),
        ({"momentum": 0.9}, "momentum", False),
        ({"momentum": 0.9, "nesterov": True}, "nesterov", True),
        ({"weight_decay": 0.0}, "weightDecay", True),
        ({"weight_decay": 0.1}, "weightDecay", False),
    ],
    ids=str,
)
def test_torchs_settings_are_constant_at_their_defaults(
    given: dict[str, Any], name: str, is_const: bool
) -> None:
    (group,) = described(torch.optim.SGD, lr=0.1, **given).groups
    assert group[name].is_const is is_const


def test_betas_become_two_constants() -> None:
    (group,) = described(torch.optim.Adam, betas=(0.5, 0.75)).groups
    assert group["beta1"] == Setting(0.5, True)
    assert group["beta2"] == Setting(0.75, True)


def test_velocity_is_scaled_like_the_loss_unless_combined() -> None:
    (separate,) = described(optim.SGD, lr=0.1, loss_scaling=4.0).groups
    assert separate["velocityScaling"] == Setting(4.0, False)
    combined = described(
        optim.SGD, lr=0.1, loss_scaling=4.0, use_combined_accum=True, velocity_scaling=2
    )
    assert combined.groups[0]["velocityScaling"] == Setting(2.0, False)
    assert (combined.kind, combined.loss_scaling) == ("SGD1", Setting(4.0, False))


def test_a_scaling_that_adapts_is_variable() -> None:
    sgd = torch.optim.SGD([WEIGHT], lr=0.1)
    assert describe(sgd, is_automatic=False).loss_scaling.is_const
    assert not describe(sgd, is_automatic=True).loss_scaling.is_const


def test_rates_may_be_tensors() -> None:
    (group,) = described(torch.optim.Adam, lr=torch.tensor(0.5)).groups
    assert group["learningRate"] == Setting(0.5, False)


HALF, FULL = torch.float16, torch.float32


@pytest.mark.parametrize(
    ("kind", "arguments", "slots"),
    [
        (optim.SGD, {}, {}),
        (optim.SGD, {"momentum": 0.9, "velocity_accum_type": HALF}, {"velocity": HALF}),
        (optim.SGD, {"momentum": 0.0}, {"velocity": FULL}),
        (
            optim.SGD,
            {"momentum": 0.9, "use_combined_accum": True},
            {"velocity": None},
        ),
        (
            optim.Adam,
            {"second_order_momentum_accum_type": HALF},
            {"moment1": FULL, "moment2": HALF, "step": FULL},
        ),
        (optim.LAMB, {"bias_correction": False}, {"moment1": FULL, "moment2": FULL}),
        (optim.RMSprop, {}, {"square_average": FULL}),
        (
            optim.RMSprop,
            {"centered": True, "momentum": 0.5},
            {"square_average": FULL, "gradient_average": FULL, "velocity": FULL},
        ),
    ],
    ids=str,
)
def test_state_that_is_held(
    kind: Any, arguments: dict[str, Any], slots: dict[str, Any]
) -> None:
    assert held_slots(described(kind, lr=0.1, **arguments)) == slots


def test_rules_have_what_the_engine_needs() -> None:
    sgd = optim.SGD([WEIGHT], lr=0.1, momentum=0.5, loss_scaling=2.0, max_grad_norm=3.0)
    names = names_of_groups(sgd, {id(WEIGHT): "w"})
    rule = make_rule(describe(sgd, is_automatic=False), names)
    assert (rule.kind, rule.names) == ("momentum", ("w",))
    assert (rule.loss_scaling, rule.max_grad_norm) == (2.0, 3.0)
    assert rule.groups[0].settings["velocity_scaling"] == 2.0
    assert rule.accumulator_type is torch.float32


def test_centered_is_one_for_all_groups() -> None:
    groups = [{"params": [WEIGHT]}, {"params": [torch.ones(1)], "centered": True}]
    rmsprop = torch.optim.RMSprop(groups)
    with pytest.raises(AssertionError, match="same value of 'centered'"):
        check_optimizer(rmsprop)
