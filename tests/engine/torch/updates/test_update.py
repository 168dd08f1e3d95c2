"""Updates: torch's optimisers to the last bit, and formulas torch does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from popple.engine.torch import (
    STATE_SLOTS,
    ParameterGroup,
    UpdateRule,
    apply_update,
    initial_state,
    with_equal_steps,
)
from popple.engine.torch.updates.update import Slots
from popple.errors import UsageError

SHAPES = ((3, 4), (4,), ())
SGD = {"momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False}
ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}
RMSPROP = {
    "alpha": 0.9,
    "eps": 1e-8,
    "weight_decay": 0.0,
    "momentum": 0.0,
    "centered": False,
}
LAMB = {**ADAM, "weight_decay": 0.01, "max_weight_norm": 65500.0, "bias_correction": 1}


def weights_of(seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        f"w{index}": torch.randn(shape, generator=generator)
        for index, shape in enumerate(SHAPES)
    }


def rule_of(kind: str, settings: dict[str, Any], **extra: Any) -> UpdateRule:
    names = tuple(weights_of())
    return UpdateRule(kind, (ParameterGroup(names, {"lr": 0.1, **settings}),), **extra)


def run(rule: UpdateRule, num_steps: int = 10) -> tuple[dict[str, Tensor], Slots]:
    """Weights and state after so many updates with the gradients of seed 1, 2, ..."""
    weights = weights_of()
    state = initial_state(rule, weights)
    for step in range(num_steps):
        apply_update(rule, weights, weights_of(step + 1), state)
    return weights, state


def run_torch(
    make: Callable[[list[Tensor]], torch.optim.Optimizer], num_steps: int = 10
) -> list[Tensor]:
    weights = [w.requires_grad_() for w in weights_of().values()]
    optimizer = make(weights)
    for step in range(num_steps):
        for weight, gradient in zip(
            weights, weights_of(step + 1).values(), strict=True
        ):
            weight.grad = gradient
        optimizer.step()
    return [w.detach() for w in weights]


def assert_bitwise(
    rule: UpdateRule, make: Callable[[list[Tensor]], torch.optim.Optimizer]
) -> None:
    ours, _ = run(rule)
    for mine, theirs in zip(ours.values(), run_torch(make), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"weight_decay": 0.1},
        {"momentum": 0.9},
        {"momentum": 0.9, "weight_decay": 0.1},
        {"momentum": 0.9, "nesterov": True},
    ],
    ids=str,
)
def test_sgd_is_torchs(settings: dict[str, Any]) -> None:
    kind = "momentum" if "momentum" in settings else "sgd"
    rule = rule_of(kind, {**SGD, **settings})
    assert_bitwise(rule, lambda ws: torch.optim.SGD(ws, lr=0.1, **settings))


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_adam_is_torchs(name: str, decay: float) -> None:
    """To the last bit with the fused kernel, to float32 rounding with the loop."""
    rule = rule_of(name.lower(), {**ADAM, "weight_decay": decay})
    make = getattr(torch.optim, name)
    assert_bitwise(rule, lambda ws: make(ws, lr=0.1, weight_decay=decay, fused=True))
    ours, _ = run(rule)
    plain = run_torch(lambda ws: make(ws, lr=0.1, weight_decay=decay))
    for mine, theirs in zip(ours.values(), plain, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-7)


def test_gradients_may_be_laid_out_otherwise_than_weights() -> None:
    rule = UpdateRule("adam", (ParameterGroup(("w",), {"lr": 0.1, **ADAM}),))
    weights, gradient = {"w": torch.zeros(2, 3)}, torch.tensor([[1.0, -1.0]] * 3).t()
    apply_update(rule, weights, {"w": gradient}, initial_state(rule, weights))
    # The first step of Adam is the rate against the gradient's sign.
    torch.testing.assert_close(weights["w"], -0.1 * gradient)


@pytest.mark.parametrize(
    "settings",
    [{}, {"weight_decay": 0.1}, {"momentum": 0.9}, {"centered": True}],
    ids=str,
)
def test_rmsprop_is_torchs(settings: dict[str, Any]) -> None:
    rule = rule_of("rmsprop", {**RMSPROP, **settings})
    assert_bitwise(
        rule, lambda ws: torch.optim.RMSprop(ws, lr=0.1, alpha=0.9, **settings)
    )


def test_groups_have_settings_of_their_own() -> None:
    first = ParameterGroup(("w0",), {**SGD, "lr": 0.1})
    second = ParameterGroup(("w1", "w2"), {**SGD, "lr": 0.5})
    rule = UpdateRule("sgd", (first, second))
    assert_bitwise(
        rule,
        lambda ws: torch.optim.SGD(
            [{"params": ws[:1]}, {"params": ws[1:], "lr": 0.5}], lr=0.1
        ),
    )


def test_dampening_acts_from_the_first_step_and_without_momentum() -> None:
    damped, _ = run(rule_of("sgd", {**SGD, "dampening": 0.5}), num_steps=1)
    start, gradient = weights_of()["w0"], weights_of(1)["w0"]
    torch.testing.assert_close(damped["w0"], start - 0.1 * 0.5 * gradient)
    settings = {**SGD, "dampening": 0.5, "momentum": 0.9}
    moved, state = run(rule_of("momentum", settings), num_steps=1)
    assert torch.equal(state["velocity"]["w0"], 0.5 * gradient)
    torch.testing.assert_close(moved["w0"], start - 0.1 * 0.5 * gradient)


def test_the_tf_variant_of_rmsprop() -> None:
    rule = rule_of("rmsprop", {**RMSPROP, "momentum": 0.9}, uses_tf_variant=True)
    weights, _ = run(rule, num_steps=2)
    # The average starts at 1, eps is inside the root, the rate inside the velocity.
    expected, average, velocity = weights_of()["w0"].double(), 1.0, 0.0
    for step in (1, 2):
        gradient = weights_of(step)["w0"].double()
        average = 0.9 * average + 0.1 * gradient**2
        velocity = 0.9 * velocity + 0.1 * gradient / (average + 1e-8).sqrt()
        expected = expected - velocity
    torch.testing.assert_close(weights["w0"].double(), expected, rtol=1e-5, atol=1e-6)


def lamb_by_hand(num_steps: int, correct: bool, limit: float) -> Tensor:
    weight = weights_of()["w0"].double()
    first = second = torch.zeros_like(weight)
    for step in range(1, num_steps + 1):
        gradient = weights_of(step)["w0"].double()
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        m = first / (1 - 0.9**step) if correct else first
        v = second / (1 - 0.999**step) if correct else second
        direction = m / (v.sqrt() + 1e-8) + 0.01 * weight
        ratio = min(weight.norm().item(), limit) / direction.norm()
        weight = weight - 0.1 * ratio * direction
    return weight


@pytest.mark.parametrize("limit", [65500.0, 0.5])
@pytest.mark.parametrize("correct", [True, False])
def test_lamb_is_its_formula(correct: bool, limit: float) -> None:
    settings = {**LAMB, "bias_correction": correct, "max_weight_norm": limit}
    weights, _ = run(rule_of("lamb", settings), num_steps=5)
    expected = lamb_by_hand(5, correct, limit)
    torch.testing.assert_close(weights["w0"].double(), expected, rtol=1e-5, atol=1e-6)


def test_lamb_takes_adams_step_where_a_norm_is_zero() -> None:
    rule = UpdateRule("lamb", (ParameterGroup(("w",), {"lr": 0.1, **LAMB}),))
    weights = {"w": torch.zeros(2)}
    apply_update(rule, weights, {"w": torch.ones(2)}, initial_state(rule, weights))
    torch.testing.assert_close(weights["w"], torch.full((2,), -0.1))


def test_a_weight_without_a_gradient_stays() -> None:
    rule = rule_of("adam", ADAM)
    weights = weights_of()
    state = initial_state(rule, weights)
    apply_update(rule, weights, {"w1": torch.ones(4)}, state)
    assert torch.equal(weights["w0"], weights_of()["w0"])
    assert not torch.equal(weights["w1"], weights_of()["w1"])


def test_state_begins_at_zero_and_has_the_types_of_the_weights() -> None:
    weights = {"w": torch.ones(2, dtype=torch.float16)}
    rule = UpdateRule("adam", (ParameterGroup(("w",), ADAM),))
    state = initial_state(rule, weights)
    assert tuple(state) == STATE_SLOTS["adam"]
    assert state["moment1"]["w"].dtype is torch.float16
    assert state["step"]["w"].item() == 0


def test_an_unknown_kind_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="Did you mean 'adam'"):
        UpdateRule("adamm", ())


@pytest.mark.parametrize("bound", [0.0, -1.0, float("nan")])
def test_a_bound_on_the_norm_is_positive(bound: float) -> None:
    with pytest.raises(UsageError, match="max_grad_norm must be a positive number"):
        rule_of("sgd", SGD, max_grad_norm=bound)


HALF = torch.float16


def half_rule(slot_type: torch.dtype | None) -> UpdateRule:
    slots = {"velocity": slot_type}
    settings = {**SGD, "lr": 1.0, "momentum": 0.5}
    group = ParameterGroup(("w",), settings)
    return UpdateRule("momentum", (group,), slot_types=slots)


@pytest.mark.parametrize(("slot_type", "held"), [(None, HALF), (torch.float32,) * 2])
def test_state_has_the_types_asked_for(
    slot_type: torch.dtype | None, held: torch.dtype
) -> None:
    rule, weights = half_rule(slot_type), {"w": torch.zeros(1, dtype=HALF)}
    state = initial_state(rule, weights)
    apply_update(rule, weights, {"w": torch.full((1,), 1e-8)}, state)
    assert state["velocity"]["w"].dtype is held
    # 1e-8 is below the smallest float16.
    assert bool(state["velocity"]["w"]) is (held is torch.float32)
    assert weights["w"].dtype is HALF


def test_arithmetic_on_halves_is_done_in_float32() -> None:
    # In float16 eps is 0 and the square of the gradient too: 0 / 0.
    rule = UpdateRule("adam", (ParameterGroup(("w",), {"lr": 0.5, **ADAM}),))
    weights = {"w": torch.ones(1, dtype=HALF)}
    gradient = torch.tensor([1e-4], dtype=HALF)
    apply_update(rule, weights, {"w": gradient}, initial_state(rule, weights))
    assert weights["w"].item() == 0.5


def test_velocity_is_held_scaled() -> None:
    settings = {**SGD, "momentum": 0.5}
    plain, _ = run(rule_of("momentum", settings))
    scaled, state = run(rule_of("momentum", {**settings, "velocity_scaling": 8.0}))
    _, unscaled = run(rule_of("momentum", settings))
    assert torch.equal(scaled["w0"], plain["w0"])
    assert torch.equal(state["velocity"]["w0"], 8 * unscaled["velocity"]["w0"])


def test_velocity_follows_though_momentum_is_zero() -> None:
    rule = rule_of("momentum", {**SGD, "momentum": 0.0})
    weights, state = run(rule)
    assert torch.equal(state["velocity"]["w0"], weights_of(10)["w0"])
    assert torch.equal(weights["w0"], run(rule_of("sgd", SGD))[0]["w0"])


def test_weights_with_other_steps_become_groups_of_their_own() -> None:
    rule, weights = rule_of("adam", ADAM), weights_of()
    state = initial_state(rule, weights)
    assert with_equal_steps(rule, state) == rule
    state["step"]["w1"].fill_(99)
    divided = with_equal_steps(rule, state)
    assert [group.names for group in divided.groups] == [("w0", "w2"), ("w1",)]


def test_lamb_without_steps_does_not_count_them() -> None:
    settings = {**LAMB, "bias_correction": False}
    slots = {"moment1": None, "moment2": None}
    weights, state = run(rule_of("lamb", settings, slot_types=slots), num_steps=3)
    expected, _ = run(rule_of("lamb", settings), num_steps=3)
    assert torch.equal(weights["w0"], expected["w0"])
    assert set(state) == {"moment1", "moment2"}


def test_no_number_comes_of_powers_that_are_none() -> None:
    rule = rule_of("adam", {**ADAM, "beta1": -0.5, "beta2": -0.5})
    weights = weights_of()
    state = initial_state(rule, weights)
    for step in state["step"].values():
        step.fill_(0.5)
    apply_update(rule, weights, weights_of(1), state)
    assert weights["w0"].isnan().all()


def test_a_loss_cannot_be_scaled_to_nothing() -> None:
    with pytest.raises(UsageError, match="loss_scaling must not be 0"):
        rule_of("sgd", SGD, loss_scaling=0.0)
