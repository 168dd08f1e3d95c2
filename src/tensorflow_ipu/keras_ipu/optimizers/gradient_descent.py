"""Gradient descent with automatic loss scaling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf
from tf_keras.src.optimizers.legacy import gradient_descent

from tensorflow_ipu._types import UpdateState

from .parameter_unscaling_optimizer import (
    _ParameterUnscalingALSOptimizer,
    _ParameterUnscalingOptimizer,
    with_scaling_arguments,
)

__all__ = ["ALSOptimizerSGD"]


class _ParameterUnscalingSGD(_ParameterUnscalingOptimizer, gradient_descent.SGD):
    """Gradient descent, with momentum, for scaled gradients."""

    def _resource_apply_dense(
        self,
        grad: tf.Tensor,
        var: tf.Variable,
        apply_state: UpdateState | None = None,
    ) -> tf.Operation:
        known = self._coefficients(var, apply_state)
        gradient, value = tf.cast(grad, tf.float32), tf.cast(var, tf.float32)
        rate = known["lr_t"] / self._scale
        if not self._momentum:
            return self._assigned(var, value - rate * gradient)
        momentum = known["momentum"] * self._moment(var, "momentum", 1) + gradient
        return self._assigned(var, value - rate * momentum, momentum=momentum)


class ALSOptimizerSGD(_ParameterUnscalingALSOptimizer):
    """Gradient descent, with momentum, that scales its loss by itself."""

    _INNER_SETTINGS = ("learning_rate", "momentum")

    @with_scaling_arguments
    def __init__(
        self,
        learning_rate: float | tf.Tensor | Callable[[], float] = 0.01,
        momentum: float = 0.0,
        name: str = "ALSOptimizerSGD",
        **settings: Any,
    ) -> None:
        inner = _ParameterUnscalingSGD(learning_rate, momentum)
        super().__init__(inner, name=name, **settings)
