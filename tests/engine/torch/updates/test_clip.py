"""Clipping by the joint norm, as torch does it."""

from __future__ import annotations

import pytest
import torch

from popple.engine.torch import (
    ParameterGroup,
    UpdateRule,
    apply_update,
    clip_gradients,
)


@pytest.mark.parametrize("bound", [0.1, 1.0, 100.0])
def test_it_is_torchs_clipping(bound: float) -> None:
    torch.manual_seed(0)
    weights = [
        torch.zeros(3, 4, requires_grad=True),
        torch.zeros(5, requires_grad=True),
    ]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    gradients = [w.grad.clone() for w in weights if w.grad is not None]
    torch.nn.utils.clip_grad_norm_(weights, bound)
    for mine, weight in zip(clip_gradients(gradients, bound), weights, strict=True):
        assert weight.grad is not None
        assert torch.equal(mine, weight.grad)


def test_gradients_that_share_memory_are_scaled_once() -> None:
    gradient = torch.ones(())
    clipped = clip_gradients([gradient.expand(8), gradient.expand(8)], 2.0)
    # 16 ones have the norm 4: half of each is left.
    torch.testing.assert_close(clipped[1], torch.full((8,), 0.5))
    assert gradient.item() == 1.0


def test_nothing_to_clip_is_nothing() -> None:
    assert clip_gradients([], 1.0) == []


def test_a_rule_clips_before_it_updates() -> None:
    settings = {"lr": 1.0, "momentum": 0, "dampening": 0, "weight_decay": 0}
    group = ParameterGroup(("w",), {**settings, "nesterov": False})
    weights = {"w": torch.zeros(4)}
    rule = UpdateRule("sgd", (group,), max_grad_norm=1.0)
    apply_update(rule, weights, {"w": torch.ones(4)}, {})
    # Four ones have the norm 2, so each becomes 1/2.
    torch.testing.assert_close(weights["w"], torch.full((4,), -0.5))
