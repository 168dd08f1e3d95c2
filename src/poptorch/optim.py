"""Optimisers: torch's own, with what an IPU adds.

Each class derives from torch's class of the same name and takes its arguments and
the extra ones below. On the CPU, `step()` is torch's. On the device the executor
reads the attributes and groups; Python code of a subclass is never run there.

| extra argument | default | meaning |
|---|---|---|
| loss_scaling | 1.0 | factor on the loss, taken out of the gradients again |
| *_accum_type | float32 | number format of accumulators and moments |
| max_grad_norm | inf | clip the global norm of all gradients |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import torch

from ._logging import logger
from ._optim.state import Optimizer, VariableAttributes, explicit

__all__ = [
    "LAMB",
    "SGD",
    "Adam",
    "AdamW",
    "Optimizer",
    "RMSprop",
    "VariableAttributes",
]

_MOMENT_TYPES = (
    "accum_type",
    "first_order_momentum_accum_type",
    "second_order_momentum_accum_type",
)


class SGD(Optimizer, torch.optim.SGD):  # pyright: ignore[reportIncompatibleMethodOverride]
    """Stochastic gradient descent with momentum.

    `use_combined_accum` keeps gradient and velocity in one tensor; only then is
    `velocity_scaling` used, and it can be set per parameter group.
    """

    _extra_arguments: ClassVar[tuple[str, ...]] = (
        "loss_scaling",
        "velocity_scaling",
        "use_combined_accum",
        "accum_type",
        "velocity_accum_type",
        "max_grad_norm",
    )
    _group_arguments: ClassVar[tuple[str, ...]] = (
        "lr",
        "momentum",
        "dampening",
        "weight_decay",
        "nesterov",
        "velocity_scaling",
    )

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        momentum: float | None = None,
        dampening: float | None = None,
        weight_decay: float | None = None,
        nesterov: bool | None = None,
        maximize: bool | None = None,
        foreach: bool | None = None,
        differentiable: bool | None = None,
        loss_scaling: float | None = None,
        velocity_scaling: float | None = None,
        use_combined_accum: bool | None = None,
        accum_type: torch.dtype | None = None,
        velocity_accum_type: torch.dtype | None = None,
        max_grad_norm: float | None = None,
    ) -> None:
        given = explicit(locals())
        Optimizer.__init__(self)
        torch.optim.SGD.__init__(self, **self._torch_arguments(given))
        self._keep_extras(given)
        self._scale_velocity(given.get("velocity_scaling"))
        self._track(given)

    def _scale_velocity(self, scaling: float | None) -> None:
        if not self.use_combined_accum:
            if scaling is not None:
                logger.warning(
                    "velocity_scaling is ignored without use_combined_accum=True. "
                    "Leave it out or set use_combined_accum."
                )
            return
        value = 1.0 if scaling is None else scaling
        self.defaults["velocity_scaling"] = value
        for group in self.param_groups:
            group.setdefault("velocity_scaling", value)


class Adam(Optimizer, torch.optim.Adam):  # pyright: ignore[reportIncompatibleMethodOverride]
    """Adam with L2 decay; AMSGrad does not exist on the device."""

    _extra_arguments: ClassVar[tuple[str, ...]] = (
        "loss_scaling",
        *_MOMENT_TYPES,
        "max_grad_norm",
    )
    _group_arguments: ClassVar[tuple[str, ...]] = (
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "amsgrad",
    )

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | None = None,
        betas: tuple[float, float] | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        amsgrad: bool | None = None,
        foreach: bool | None = None,
        maximize: bool | None = None,
        capturable: bool | None = None,
        differentiable: bool | None = None,
        fused: bool | None = None,
        loss_scaling: float | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
        max_grad_norm: float | None = None,
    ) -> None:
        given = explicit(locals())
        _refuse_amsgrad(amsgrad)
        Optimizer.__init__(self)
        torch.optim.Adam.__init__(self, **self._torch_arguments(given))
        self._keep_extras(given)
        self._track(given)


class AdamW(Optimizer, torch.optim.AdamW):  # pyright: ignore[reportIncompatibleMethodOverride]
    """Adam with decoupled decay; `bias_correction=False` has no effect on values."""

    _extra_arguments: ClassVar[tuple[str, ...]] = (
        "loss_scaling",
        "bias_correction",
        *_MOMENT_TYPES,
        "max_grad_norm",
    )
    _group_arguments: ClassVar[tuple[str, ...]] = Adam._group_arguments

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | None = None,
        betas: tuple[float, float] | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        amsgrad: bool | None = None,
        maximize: bool | None = None,
        foreach: bool | None = None,
        capturable: bool | None = None,
        differentiable: bool | None = None,
        fused: bool | None = None,
        loss_scaling: float | None = None,
        bias_correction: bool | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
        max_grad_norm: float | None = None,
    ) -> None:
        given = explicit(locals())
        _refuse_amsgrad(amsgrad)
        Optimizer.__init__(self)
        torch.optim.AdamW.__init__(self, **self._torch_arguments(given))
        self._keep_extras(given)
        self._track(given)


class RMSprop(Optimizer, torch.optim.RMSprop):  # pyright: ignore[reportIncompatibleMethodOverride]
    """RMSprop; `use_tf_variant` takes TensorFlow's formula for the device."""

    _extra_arguments: ClassVar[tuple[str, ...]] = (
        "loss_scaling",
        *_MOMENT_TYPES,
        "use_tf_variant",
    )
    _group_arguments: ClassVar[tuple[str, ...]] = (
        "lr",
        "momentum",
        "weight_decay",
        "alpha",
        "eps",
        "centered",
    )

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | None = None,
        alpha: float | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        momentum: float | None = None,
        centered: bool | None = None,
        foreach: bool | None = None,
        maximize: bool | None = None,
        differentiable: bool | None = None,
        loss_scaling: float | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
        use_tf_variant: bool | None = None,
    ) -> None:
        given = explicit(locals())
        Optimizer.__init__(self)
        torch.optim.RMSprop.__init__(self, **self._torch_arguments(given))
        self._keep_extras(given)
        self._track(given)


_LAMB_DEFAULTS: dict[str, Any] = {
    "lr": 1e-3,
    "betas": (0.9, 0.999),
    "eps": 1e-8,
    "weight_decay": 1e-2,
    "max_weight_norm": 65500.0,
}


class LAMB(Optimizer, torch.optim.Optimizer):  # pyright: ignore[reportIncompatibleMethodOverride]
    """Adam's direction, with a step length in proportion to the norm of the weight."""

    _extra_arguments: ClassVar[tuple[str, ...]] = (
        "loss_scaling",
        "bias_correction",
        *_MOMENT_TYPES,
    )
    _group_arguments: ClassVar[tuple[str, ...]] = tuple(_LAMB_DEFAULTS)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | None = None,
        betas: tuple[float, float] | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        bias_correction: bool | None = None,
        loss_scaling: float | None = None,
        max_weight_norm: float | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
    ) -> None:
        given = explicit(locals())
        Optimizer.__init__(self)
        defaults = {
            name: given.get(name, value) for name, value in _LAMB_DEFAULTS.items()
        }
        torch.optim.Optimizer.__init__(self, params, defaults)
        self._keep_extras(given)
        self._track(given)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update on the CPU; returns what `closure` returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._update(weight, group)
        return loss

    def _update(self, weight: torch.Tensor, group: dict[str, Any]) -> None:
        direction = self._direction(weight, group)
        direction = direction + group["weight_decay"] * weight
        ratio = _trust_ratio(weight, direction, group["max_weight_norm"])
        weight.sub_(group["lr"] * ratio * direction)

    def _direction(self, weight: torch.Tensor, group: dict[str, Any]) -> torch.Tensor:
        """Adam's direction for `weight`; moves its moments on."""
        gradient, state = weight.grad, self.state[weight]
        assert gradient is not None
        if not state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(weight)
            state["exp_avg_sq"] = torch.zeros_like(weight)
        state["step"] += 1
        first, second = group["betas"]
        mean = state["exp_avg"].lerp_(gradient, 1 - first)
        square = state["exp_avg_sq"].mul_(second)
        square.addcmul_(gradient, gradient, value=1 - second)
        if self.bias_correction:
            mean = mean / (1 - first ** state["step"])
            square = square / (1 - second ** state["step"])
        return mean / (square.sqrt() + group["eps"])


def _trust_ratio(
    weight: torch.Tensor, direction: torch.Tensor, max_weight_norm: float
) -> float:
    """min(|w|, max) / |u|, or 1 if either is 0."""
    weight_norm = min(weight.norm().item(), max_weight_norm)
    direction_norm = direction.norm().item()
    if weight_norm == 0 or direction_norm == 0:
        return 1.0
    return weight_norm / direction_norm


def _refuse_amsgrad(amsgrad: bool | None) -> None:
    if amsgrad:
        raise ValueError(
            "Only non-amsgrad Adam/AdamW optimizers are supported: pass amsgrad=False."
        )
