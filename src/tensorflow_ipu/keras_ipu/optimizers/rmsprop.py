"""RMSProp with automatic loss scaling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf
from tf_keras.src.optimizers.legacy import rmsprop

from tensorflow_ipu._types import UpdateState

from .parameter_unscaling_optimizer import (
    _ParameterUnscalingALSOptimizer,
    _ParameterUnscalingOptimizer,
    with_scaling_arguments,
)

__all__ = ["ALSOptimizerRMSProp"]


class _ParameterUnscalingRMSProp(_ParameterUnscalingOptimizer, rmsprop.RMSprop):
    """RMSProp, with momentum and centred if wanted, for scaled gradients."""

    def _resource_apply_dense(
        self,
        grad: tf.Tensor,
        var: tf.Variable,
        apply_state: UpdateState | None = None,
    ) -> tf.Operation:
        known = self._coefficients(var, apply_state)
        gradient, value = tf.cast(grad, tf.float32), tf.cast(var, tf.float32)
        rho = known["rho"]
        rms = rho * self._moment(var, "rms", 2) + (1 - rho) * tf.square(gradient)
        moments, variance = {"rms": rms}, rms
        if self.centered:
            mean = rho * self._moment(var, "mg", 1) + (1 - rho) * gradient
            moments["mg"], variance = mean, rms - tf.square(mean)
        epsilon = known["epsilon"] * tf.square(self._scale)
        step = known["lr_t"] * gradient / tf.sqrt(variance + epsilon)
        if self._momentum:
            # A sum of steps, which are not scaled.
            step = known["momentum"] * self._moment(var, "momentum", 0) + step
            moments["momentum"] = step
        return self._assigned(var, value - step, **moments)


class ALSOptimizerRMSProp(_ParameterUnscalingALSOptimizer):
    """RMSProp that scales its loss by itself."""

    _INNER_SETTINGS = ("learning_rate", "rho", "momentum", "epsilon", "centered")

    @with_scaling_arguments
    def __init__(
        self,
        learning_rate: float | tf.Tensor | Callable[[], float] = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        name: str = "ALSOptimizerRMSProp",
        **settings: Any,
    ) -> None:
        inner = _ParameterUnscalingRMSProp(
            learning_rate, rho, momentum, epsilon, centered
        )
        super().__init__(inner, name=name, **settings)
