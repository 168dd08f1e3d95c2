"""Optimisers whose moments are kept multiplied by the loss scaling factor.

A gradient in half precision may be too small to be unscaled. These optimisers take the
scaled one: their moments are of scaled gradients too, are carried over when the factor
changes, and the factor is divided out only in single precision, in the update itself.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v2 as tf
from tf_keras.src.optimizers.legacy.optimizer_v2 import OptimizerV2

from tensorflow_ipu._types import Optimizer, UpdateState

from .als_optimizer import ALSOptimizer, saturated

__all__ = [
    "_ParameterUnscalingALSOptimizer",
    "_ParameterUnscalingOptimizer",
    "with_scaling_arguments",
]


class _ParameterUnscalingOptimizer(OptimizerV2):
    """Base of optimisers that are told by what their gradients are scaled.

    `_scale` is the factor of the gradients being applied, `_carried` what moments have
    to be multiplied by to be of the same scale.
    """

    _scale: Any = 1.0
    _carried: Any = 1.0

    def set_scales(self, scale: Any, carried: Any) -> None:
        """Say how the gradients to come are scaled."""
        self._scale, self._carried = scale, carried

    def _coefficients(
        self,
        var: tf.Variable,
        apply_state: UpdateState,
    ) -> dict[str, Any]:
        """Hyperparameters as float32 tensors."""
        key = (var.device, var.dtype.base_dtype)
        known = (apply_state or {}).get(key) or self._fallback_apply_state(*key)
        return {
            name: _single(value) for name, value in known.items() if tf.is_tensor(value)
        }

    def _moment(self, var: tf.Variable, name: str, power: int) -> tf.Tensor:
        """A moment in single precision, in units of the gradients being applied."""
        return _single(self.get_slot(var, name)) * self._carried**power

    def _assigned(self, var: tf.Variable, value: Any, **moments: Any) -> tf.Operation:
        """Set a variable, and moments by name, in their own types."""
        slots = [(self.get_slot(var, name), new) for name, new in moments.items()]
        pairs = [*slots, (var, value)]
        return tf.group(*(v.assign(tf.cast(new, v.dtype)) for v, new in pairs))


class _ParameterUnscalingALSOptimizer(ALSOptimizer):
    """Automatic loss scaling for an optimiser that takes scaled gradients."""

    def __init__(self, opt: Optimizer, **settings: Any) -> None:
        if not isinstance(opt, _ParameterUnscalingOptimizer):
            raise ValueError(
                "opt must be an OptimizerV2 specialization derived from "
                f"_ParameterUnscalingOptimizer, not {type(opt).__name__}."
            )
        super().__init__(opt, **settings)
        first = self.initial_loss_scaling_factor
        self._moments_lsf = self._new_state("moments_lsf", first, tf.float32)

    def _prepare_for_accumulation(
        self, grads_and_vars: list[tuple[Any, Any]], captured: dict[str, Any] | None
    ) -> list[tuple[Any, Any]]:
        """The gradients of one step, scaled, and how many are out of range."""
        scaled = [
            (None if grad is None else saturated(tf.convert_to_tensor(grad)), variable)
            for grad, variable in grads_and_vars
        ]
        return [*scaled, self._counted(grads_and_vars, captured)]

    def _apply_accumulated(
        self, pairs: list[tuple[Any, Any]], **options: Any
    ) -> tf.Operation | None:
        scale = tf.identity(self._lsf)
        self._opt.set_scales(scale, scale / tf.identity(self._moments_lsf))
        self._moments_lsf.assign(scale)
        return super()._apply_accumulated(pairs, **options)

    def get_config(self) -> dict[str, Any]:
        """Settings of the scaling and of the optimiser, in one."""
        config = super().get_config()
        del config["inner_optimizer_type"]
        inner = config.pop("inner_optimizer_config")
        return {**{key: inner[key] for key in self._INNER_SETTINGS}, **config}

    _INNER_SETTINGS: tuple[str, ...] = ()

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Mapping[str, object] | None = None
    ) -> Any:
        """The optimiser that a configuration describes."""
        return cls(**config)


def with_scaling_arguments(init: Callable[..., None]) -> Callable[..., None]:
    """Let a constructor with `name` and `**settings` take the scaling's settings.

    They have their place, in order, between its own arguments and the name.
    """
    *own, name, _ = inspect.signature(init).parameters.values()
    _, _, *settings, _ = inspect.signature(ALSOptimizer.__init__).parameters.values()
    signature = inspect.Signature([*own, *settings, name])

    @functools.wraps(init)
    def __init__(*args: Any, **kwargs: Any) -> None:
        init(**signature.bind(*args, **kwargs).arguments)

    __init__.__signature__ = signature
    return __init__


def _single(value: Any) -> tf.Tensor:
    return tf.cast(value, tf.float32)
