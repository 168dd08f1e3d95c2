"""Optimiser formulas (SGD, Adam, AdamW, LAMB, RMSprop) over lists of float32 tensors.

Where torch has the formula, results agree with its own optimisers to the last bit: with
Adam and AdamW of `fused=True`, the fastest there are, and with the others as they are.
Weights that come together have made equally many steps; their gradients and state are
laid out as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

Settings = Mapping[str, Any]
"""Numbers by name; the rate `lr` may be a tensor."""

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
        # One pass over memory less, and no state to hold.
        _add(weights, gradients, -settings["lr"] * share)
        return
    scaling = settings.get("velocity_scaling", 1.0)
    if scaling != 1:
        gradients = list(torch._foreach_mul(gradients, scaling))
    torch._foreach_mul_(velocity, momentum)
    torch._foreach_add_(velocity, gradients, alpha=share)
    if settings["nesterov"]:
        velocity = list(torch._foreach_add(gradients, velocity, alpha=momentum))
    _add(weights, velocity, -settings["lr"] / scaling)


def _adam(
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """Decay is added to the gradient."""
    _fused(torch._fused_adam_, weights, gradients, state, settings)


def _adamw(
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """Decay acts on the weight itself."""
    _fused(torch._fused_adamw_, weights, gradients, state, settings)


def _fused(
    kernel: Callable[..., None],
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """One pass over memory, by torch's kernel for `fused=True`."""
    torch._foreach_add_(state["step"], 1)
    kernel(
        weights,
        gradients,
        state["moment1"],
        state["moment2"],
        [],
        state["step"],
        lr=settings["lr"],
        beta1=settings["beta1"],
        beta2=settings["beta2"],
        weight_decay=settings["weight_decay"],
        eps=settings["eps"],
        amsgrad=False,
        maximize=False,
    )


def _plain_adam(
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """Adam in operators that a compiler understands."""
    if decay := settings["weight_decay"]:
        gradients = list(torch._foreach_add(gradients, weights, alpha=decay))
    _follow_moments(weights, gradients, state, settings)


def _plain_adamw(
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """AdamW in operators that a compiler understands."""
    torch._foreach_mul_(weights, 1 - settings["lr"] * settings["weight_decay"])
    _follow_moments(weights, gradients, state, settings)


def _follow_moments(
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """Both moments, then a step along the first, scaled by the root of the second."""
    beta1, beta2 = settings["beta1"], settings["beta2"]
    torch._foreach_add_(state["step"], 1)
    # All weights of a call have made equally many steps (`with_equal_steps`).
    step = state["step"][0]
    torch._foreach_lerp_(state["moment1"], gradients, 1 - beta1)
    torch._foreach_mul_(state["moment2"], beta2)
    torch._foreach_addcmul_(state["moment2"], gradients, gradients, 1 - beta2)
    roots = list(torch._foreach_sqrt(state["moment2"]))
    torch._foreach_div_(roots, _correction(beta2, step).sqrt())
    torch._foreach_add_(roots, settings["eps"])
    directions = list(torch._foreach_div(state["moment1"], roots))
    _add(weights, directions, -settings["lr"] / _correction(beta1, step))


def _lamb(
    weights: list[Tensor],
    gradients: list[Tensor],
    state: Mapping[str, list[Tensor]],
    settings: Settings,
) -> None:
    """Adam's direction, scaled for each weight by the ratio of two norms."""
    beta1, beta2 = settings["beta1"], settings["beta2"]
    moment1, moment2 = state["moment1"], state["moment2"]
    torch._foreach_lerp_(moment1, gradients, 1 - beta1)
    torch._foreach_mul_(moment2, beta2)
    torch._foreach_addcmul_(moment2, gradients, gradients, 1 - beta2)
    if steps := state.get("step"):
        torch._foreach_add_(steps, 1)
    if steps and settings["bias_correction"]:
        moment1 = list(torch._foreach_div(moment1, _correction(beta1, steps[0])))
        moment2 = list(torch._foreach_div(moment2, _correction(beta2, steps[0])))
    roots = _root(moment2, settings["eps"], is_inside=False)
    directions = list(torch._foreach_div(moment1, roots))
    torch._foreach_add_(directions, weights, alpha=settings["weight_decay"])
    ratios = _trust_ratios(weights, directions, settings["max_weight_norm"])
    torch._foreach_mul_(directions, list((ratios * settings["lr"]).unbind()))
    torch._foreach_sub_(weights, directions)


def _correction(beta: float, step: Tensor) -> Tensor:
    """1 - beta**step, exact though that is close to 0."""
    if beta > 0:
        return -torch.expm1(step * math.log(beta))
    return 1 - beta**step


def _trust_ratios(
    weights: list[Tensor], directions: list[Tensor], limit: float
) -> Tensor:
    """Norms of weights, up to a limit, over norms of directions; 1 where one is 0."""
    norms = torch.stack(list(torch._foreach_norm(weights))).clamp(max=limit)
    ratios = norms / torch.stack(list(torch._foreach_norm(directions)))
    # A weight of zeros must be able to leave 0, so its ratio is 1.
    usable = torch.isfinite(ratios) & (ratios > 0)
    return torch.where(usable, ratios, torch.ones_like(ratios))


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
        _add_quotient(weights, gradients, scale, -rate)
        return
    torch._foreach_mul_(velocity, momentum)
    _add_quotient(velocity, gradients, scale, rate if is_tf else 1.0)
    _add(weights, velocity, -1.0 if is_tf else -rate)


def _add(target: list[Tensor], tensors: list[Tensor], factor: float | Tensor) -> None:
    """Add the tensors times a factor."""
    if isinstance(factor, Tensor):
        torch._foreach_add_(target, list(torch._foreach_mul(tensors, factor)))
    else:
        torch._foreach_add_(target, tensors, alpha=factor)


def _add_quotient(
    target: list[Tensor],
    above: list[Tensor],
    below: list[Tensor],
    factor: float | Tensor,
) -> None:
    """Add quotients times a factor."""
    if isinstance(factor, Tensor):
        _add(target, list(torch._foreach_div(above, below)), factor)
    else:
        torch._foreach_addcdiv_(target, above, below, factor)


def _root(average: list[Tensor], eps: float, *, is_inside: bool) -> list[Tensor]:
    """sqrt(x + eps) or sqrt(x) + eps."""
    if is_inside:
        return list(torch._foreach_sqrt(list(torch._foreach_add(average, eps))))
    return list(torch._foreach_add(list(torch._foreach_sqrt(average)), eps))


FORMULAS: dict[str, Formula] = {
    "sgd": _sgd,
    "momentum": _sgd,
    "adam": _adam,
    "adamw": _adamw,
    "lamb": _lamb,
    "rmsprop": _rmsprop,
}

PLAIN_FORMULAS = {**FORMULAS, "adam": _plain_adam, "adamw": _plain_adamw}
"""The same in operators that a compiler understands."""
