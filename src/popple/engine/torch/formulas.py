"""The optimisers' formulas over lists of tensors in float32.

Operations follow the order of torch's own optimisers, so that results agree with them
to the last bit wherever the formulas agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

Settings = Mapping[str, float | bool]
Formula = Callable[
    [list[Tensor], list[Tensor], Mapping[str, list[Tensor]], Settings], None
]
"""Overwrites weights and state, given gradients and settings."""


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


FORMULAS: dict[str, Formula] = {
    "sgd": _sgd,
    "momentum": _sgd,
    "adam": _adam,
    "adamw": _adamw,
    "lamb": _lamb,
    "rmsprop": _rmsprop,
}
