"""Weight updates: the optimisers' formulas over lists of tensors.

Operations follow the order of torch's own optimisers, so that results agree with them
to the last bit wherever the formulas agree.

An UpdateRule is the optimiser as data. State is a dict of slots, each a dict from
parameter name to tensor, made by `initial_state` and overwritten by `apply_update`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from popple.engine.torch.clip import clip_gradients
from popple.errors import UsageError, suggest

Slots = dict[str, dict[str, Tensor]]
Settings = Mapping[str, float | bool]

STATE_SLOTS: dict[str, tuple[str, ...]] = {
    "sgd": (),
    "momentum": ("velocity",),
    "adam": ("moment1", "moment2", "step"),
    "adamw": ("moment1", "moment2", "step"),
    "lamb": ("moment1", "moment2", "step"),
    "rmsprop": ("square_average", "velocity", "gradient_average"),
}
"""State of each kind of optimiser, in the order the formulas use it."""


@dataclass(frozen=True)
class ParameterGroup:
    """Weights that share settings."""

    names: tuple[str, ...]
    settings: Settings


@dataclass(frozen=True)
class UpdateRule:
    """An optimiser: its kind, its groups, and a bound on the gradients' norm."""

    kind: str
    groups: tuple[ParameterGroup, ...]
    max_grad_norm: float = float("inf")
    uses_tf_variant: bool = False

    def __post_init__(self) -> None:
        if self.kind not in STATE_SLOTS:
            remedy = suggest(self.kind, STATE_SLOTS)
            raise UsageError(f"there is no optimiser {self.kind!r}.", remedy=remedy)
        if not self.max_grad_norm > 0:
            raise UsageError(
                f"max_grad_norm must be a positive number, not {self.max_grad_norm}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """All weights the rule updates."""
        return tuple(name for group in self.groups for name in group.names)


def initial_state(rule: UpdateRule, weights: Mapping[str, Tensor]) -> Slots:
    """State before the first update: zeros, but ones for TF's RMSprop average."""
    state: Slots = {}
    for slot in STATE_SLOTS[rule.kind]:
        start = 1.0 if rule.uses_tf_variant and slot == "square_average" else 0.0
        state[slot] = {
            name: torch.zeros((), dtype=torch.float32, device=weights[name].device)
            if slot == "step"
            else torch.full_like(
                weights[name], start, memory_format=torch.preserve_format
            )
            for name in rule.names
        }
    return state


def apply_update(
    rule: UpdateRule,
    weights: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
    state: Slots,
) -> None:
    """Overwrite weights and state with those after one update."""
    if rule.max_grad_norm != float("inf"):
        clipped = clip_gradients(list(gradients.values()), rule.max_grad_norm)
        gradients = dict(zip(gradients, clipped, strict=True))
    formula = _FORMULAS[rule.kind]
    for group in rule.groups:
        names = [name for name in group.names if name in gradients]
        if not names:
            continue
        formula(
            [weights[name] for name in names],
            [gradients[name] for name in names],
            {slot: [held[name] for name in names] for slot, held in state.items()},
            {**group.settings, "use_tf_variant": rule.uses_tf_variant},
        )


def _sgd(
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """Dampening acts from the first step and without momentum; velocity starts at 0."""
    momentum, share = settings["momentum"], 1 - settings["dampening"]
    if decay := settings["weight_decay"]:
        gradients = list(torch._foreach_add(gradients, weights, alpha=decay))
    if not momentum:
        torch._foreach_add_(weights, gradients, alpha=-settings["lr"] * share)
        return
    velocity = state["velocity"]
    torch._foreach_mul_(velocity, momentum)
    torch._foreach_add_(velocity, gradients, alpha=share)
    if settings["nesterov"]:
        velocity = list(torch._foreach_add(gradients, velocity, alpha=momentum))
    torch._foreach_add_(weights, velocity, alpha=-settings["lr"])


def _adam(
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """Decay is added to the gradient."""
    if decay := settings["weight_decay"]:
        gradients = list(torch._foreach_add(gradients, weights, alpha=decay))
    _adam_direction(weights, gradients, state, settings)


def _adamw(
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """Decay acts on the weight itself."""
    torch._foreach_mul_(weights, 1 - settings["lr"] * settings["weight_decay"])
    _adam_direction(weights, gradients, state, settings)


def _adam_direction(
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """Both moments, then a step along the first, scaled by the root of the second."""
    beta1, beta2 = settings["beta1"], settings["beta2"]
    torch._foreach_add_(state["step"], 1)
    step = float(state["step"][0])
    torch._foreach_lerp_(state["moment1"], gradients, 1 - beta1)
    torch._foreach_mul_(state["moment2"], beta2)
    torch._foreach_addcmul_(state["moment2"], gradients, gradients, 1 - beta2)
    denominator = torch._foreach_sqrt(state["moment2"])
    torch._foreach_div_(denominator, (1 - beta2**step) ** 0.5)
    torch._foreach_add_(denominator, settings["eps"])
    size = settings["lr"] / (1 - beta1**step)
    torch._foreach_addcdiv_(weights, state["moment1"], denominator, -size)


def _lamb(
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """Adam's direction, scaled for each weight by the ratio of two norms."""
    beta1, beta2 = settings["beta1"], settings["beta2"]
    moment1, moment2 = state["moment1"], state["moment2"]
    torch._foreach_add_(state["step"], 1)
    torch._foreach_lerp_(moment1, gradients, 1 - beta1)
    torch._foreach_mul_(moment2, beta2)
    torch._foreach_addcmul_(moment2, gradients, gradients, 1 - beta2)
    limit = settings["max_weight_norm"]
    for weight, first, second, step in zip(
        weights, moment1, moment2, state["step"], strict=True
    ):
        if settings["bias_correction"]:
            first = first / (1 - beta1 ** float(step))
            second = second / (1 - beta2 ** float(step))
        direction = first / (second.sqrt() + settings["eps"])
        direction += settings["weight_decay"] * weight
        ratio = weight.norm().clamp(max=limit) / direction.norm()
        usable = torch.isfinite(ratio) & (ratio > 0)
        ratio = torch.where(usable, ratio, torch.ones_like(ratio))
        weight -= settings["lr"] * ratio * direction


def _rmsprop(
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    alpha, momentum, rate = settings["alpha"], settings["momentum"], settings["lr"]
    is_tf = settings["use_tf_variant"]
    if settings["weight_decay"]:
        gradients = list(
            torch._foreach_add(gradients, weights, alpha=settings["weight_decay"])
        )
    average = state["square_average"]
    torch._foreach_mul_(average, alpha)
    torch._foreach_addcmul_(average, gradients, gradients, 1 - alpha)
    if settings["centered"]:
        torch._foreach_lerp_(state["gradient_average"], gradients, 1 - alpha)
        means = state["gradient_average"]
        average = list(torch._foreach_addcmul(average, means, means, -1.0))
    scale = _root(average, settings["eps"], is_inside=bool(is_tf))
    if not momentum:
        torch._foreach_addcdiv_(weights, gradients, scale, -rate)
        return
    velocity = state["velocity"]
    torch._foreach_mul_(velocity, momentum)
    torch._foreach_addcdiv_(velocity, gradients, scale, rate if is_tf else 1.0)
    torch._foreach_add_(weights, velocity, alpha=-1.0 if is_tf else -rate)


def _root(average: list[Tensor], eps: float, *, is_inside: bool) -> list[Tensor]:
    """sqrt(x + eps) or sqrt(x) + eps."""
    if is_inside:
        return list(torch._foreach_sqrt(list(torch._foreach_add(average, eps))))
    return list(torch._foreach_add(list(torch._foreach_sqrt(average)), eps))


_FORMULAS: dict[str, Callable[..., None]] = {
    "sgd": _sgd,
    "momentum": _sgd,
    "adam": _adam,
    "adamw": _adamw,
    "lamb": _lamb,
    "rmsprop": _rmsprop,
}
