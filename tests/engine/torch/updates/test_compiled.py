"""Compiled updates: plain formulas, traced once for each set of settings.

What torch.compile makes of them is torch's business; here it makes nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from popple.engine.torch import (
    ParameterGroup,
    UpdateRule,
    apply_update,
    compiled_update,
    initial_state,
)
from popple.engine.torch.updates.formulas import PLAIN_FORMULAS

SETTINGS = {
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 0.01,
    "max_weight_norm": 65500.0,
    "bias_correction": True,
    "alpha": 0.9,
    "momentum": 0.9,
    "centered": False,
    "dampening": 0.1,
    "nesterov": False,
}
Update = Callable[..., None]


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What torch.compile was given; it gives that back."""
    given: list[Any] = []

    def note(function: Any, **_: Any) -> Any:
        given.append(function)
        return function

    monkeypatch.setattr(torch, "compile", note)
    return given


def rule_of(kind: str, rate: Any) -> UpdateRule:
    group = ParameterGroup(("a", "b"), {**SETTINGS, "lr": rate})
    return UpdateRule(kind, (group,))


def tensors(seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {n: torch.randn(3, 2, generator=generator) for n in ("a", "b")}


def updated(update: Update, kind: str, as_rate: Callable[[float], Any]) -> list[Tensor]:
    """Weights after five updates, each with half the rate of the one before."""
    weights = tensors(0)
    state = initial_state(rule_of(kind, 0.1), weights)
    for step in range(5):
        rule = rule_of(kind, as_rate(0.1 / 2**step))
        update(rule, weights, tensors(step + 1), state)
    return list(weights.values())


@pytest.mark.parametrize("kind", PLAIN_FORMULAS)
def test_rates_may_be_tensors_and_change(kind: str, compilations: list[Any]) -> None:
    mine = updated(compiled_update(), kind, torch.tensor)
    theirs = updated(apply_update, kind, float)
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)
    assert len(compilations) == 1


def test_other_settings_are_compiled_anew(compilations: list[Any]) -> None:
    update, weights = compiled_update(), tensors(0)
    rule = rule_of("adam", torch.tensor(0.1))
    state = initial_state(rule, weights)
    changed = {**rule.groups[0].settings, "beta1": 0.5}
    for settings in (rule.groups[0].settings, changed, changed):
        group = replace(rule.groups[0], settings=settings)
        update(replace(rule, groups=(group,)), weights, tensors(1), state)
    assert len(compilations) == 2
