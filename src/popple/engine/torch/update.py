"""Weight updates: the optimisers' formulas over lists of tensors.

Operations follow the order of torch's own optimisers, so that results agree with them
to the last bit wherever the formulas agree. They are done in float32; weights and state
held in float16 are rounded when they are stored.

An UpdateRule is the optimiser as data. State is a dict of slots, each a dict from
parameter name to tensor, made by `initial_state` and overwritten by `apply_update`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from popple.engine.torch.clip import clip_gradients
from popple.errors import UsageError, suggest

Slots = dict[str, dict[str, Tensor]]
Settings = Mapping[str, float | bool]
Formula = Callable[
    [list[Tensor], list[Tensor], Mapping[str, list[Tensor]], Settings], None
]
"""Overwrites weights and state, given gradients and settings."""

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
    """An optimiser: its kind, its groups, and a bound on the gradients' norm.

    Weights of one group have made equally many steps. The gradients of the step are
    `loss_scaling` times too large until they are used. `slot_types` are the slots of
    state that are held and their types, None for the type of the weight; by default
    all that the kind and its settings need. Gradients of micro-batches are summed in
    `accumulator_type`; None for their own.
    """

    kind: str
    groups: tuple[ParameterGroup, ...]
    max_grad_norm: float = float("inf")
    uses_tf_variant: bool = False
    loss_scaling: float = 1.0
    slot_types: Mapping[str, torch.dtype | None] | None = None
    accumulator_type: torch.dtype | None = None

    def __post_init__(self) -> None:
        if self.kind not in STATE_SLOTS:
            remedy = suggest(self.kind, STATE_SLOTS)
            raise UsageError(f"there is no optimiser {self.kind!r}.", remedy=remedy)
        if not self.max_grad_norm > 0:
            raise UsageError(
                f"max_grad_norm must be a positive number, not {self.max_grad_norm}."
            )
        if not self.loss_scaling:
            raise UsageError("loss_scaling must not be 0.")

    @property
    def slots(self) -> Mapping[str, torch.dtype | None]:
        """Slots of state that are held, with their types."""
        if self.slot_types is not None:
            return self.slot_types
        return dict.fromkeys(filter(self._needs, STATE_SLOTS[self.kind]))

    def _needs(self, slot: str) -> bool:
        if self.kind != "rmsprop" or slot == "square_average":
            return True
        setting = "momentum" if slot == "velocity" else "centered"
        return any(group.settings[setting] for group in self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """All weights the rule updates."""
        return tuple(name for group in self.groups for name in group.names)


def initial_state(rule: UpdateRule, weights: Mapping[str, Tensor]) -> Slots:
    """State before the first update: zeros, but ones for TF's RMSprop average."""
    state: Slots = {}
    for slot, dtype in rule.slots.items():
        start = 1.0 if rule.uses_tf_variant and slot == "square_average" else 0.0
        state[slot] = {
            name: torch.zeros((), dtype=torch.float32, device=weights[name].device)
            if slot == "step"
            else torch.full_like(
                weights[name], start, dtype=dtype, memory_format=torch.preserve_format
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
        if names:
            _in_float32(
                formula,
                [weights[name] for name in names],
                [gradients[name] for name in names],
                {slot: [state[slot][name] for name in names] for slot in rule.slots},
                {**group.settings, "use_tf_variant": rule.uses_tf_variant},
            )


def _in_float32(
    formula: Formula,
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """Update by the formula, on copies in float32 of what is held in another type."""
    stored = [*weights, *chain.from_iterable(state.values())]
    if _are_float32(stored) and _are_float32(gradients):
        formula(weights, gradients, state, settings)
        return
    wide_weights = _widened(weights)
    wide_state = {slot: _widened(held) for slot, held in state.items()}
    formula(wide_weights, _widened(gradients), wide_state, settings)
    results = [*wide_weights, *chain.from_iterable(wide_state.values())]
    for tensor, result in zip(stored, results, strict=True):
        if tensor is not result:
            tensor.copy_(result)


def _are_float32(tensors: list[Tensor]) -> bool:
    return all(tensor.dtype is torch.float32 for tensor in tensors)


def _widened(tensors: list[Tensor]) -> list[Tensor]:
    return [tensor.float() for tensor in tensors]


def _sgd(
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """Dampening acts from the first step and without momentum; velocity starts at 0.

    Velocity is held `velocity_scaling` times larger than it is.
    """
    momentum, share = settings["momentum"], 1 - settings["dampening"]
    if decay := settings["weight_decay"]:
        gradients = list(torch._foreach_add(gradients, weights, alpha=decay))
    velocity = state.get("velocity")
    if velocity is None:
        torch._foreach_add_(weights, gradients, alpha=-settings["lr"] * share)
        return
    scaling = settings.get("velocity_scaling", 1.0)
    if scaling != 1:
        gradients = list(torch._foreach_mul(gradients, scaling))
    torch._foreach_mul_(velocity, momentum)
    torch._foreach_add_(velocity, gradients, alpha=share)
    if settings["nesterov"]:
        velocity = list(torch._foreach_add(gradients, velocity, alpha=momentum))
    torch._foreach_add_(weights, velocity, alpha=-settings["lr"] / scaling)


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
    torch._foreach_div_(denominator, _power(1 - _power(beta2, step), 0.5))
    torch._foreach_add_(denominator, settings["eps"])
    size = settings["lr"] / (1 - _power(beta1, step))
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
    steps = state.get("step") or [torch.zeros(()) for _ in weights]
    torch._foreach_add_(steps, 1)
    torch._foreach_lerp_(moment1, gradients, 1 - beta1)
    torch._foreach_mul_(moment2, beta2)
    torch._foreach_addcmul_(moment2, gradients, gradients, 1 - beta2)
    limit = settings["max_weight_norm"]
    for weight, first, second, step in zip(
        weights, moment1, moment2, steps, strict=True
    ):
        if settings["bias_correction"]:
            first = first / (1 - _power(beta1, float(step)))
            second = second / (1 - _power(beta2, float(step)))
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
    velocity = state.get("velocity")
    if velocity is None:
        torch._foreach_addcdiv_(weights, gradients, scale, -rate)
        return
    torch._foreach_mul_(velocity, momentum)
    torch._foreach_addcdiv_(velocity, gradients, scale, rate if is_tf else 1.0)
    torch._foreach_add_(weights, velocity, alpha=-1.0 if is_tf else -rate)


def _root(average: list[Tensor], eps: float, *, is_inside: bool) -> list[Tensor]:
    """sqrt(x + eps) or sqrt(x) + eps."""
    if is_inside:
        return list(torch._foreach_sqrt(list(torch._foreach_add(average, eps))))
    return list(torch._foreach_add(list(torch._foreach_sqrt(average)), eps))


def _power(base: float, exponent: float) -> float:
    """base**exponent, NaN where that is no real number."""
    result = base**exponent
    return result if isinstance(result, float) else math.nan


_FORMULAS: dict[str, Formula] = {
    "sgd": _sgd,
    "momentum": _sgd,
    "adam": _adam,
    "adamw": _adamw,
    "lamb": _lamb,
    "rmsprop": _rmsprop,
}
