"""Adam with automatic loss scaling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf
from tf_keras.src.optimizers.legacy import adam

from tensorflow_ipu._types import UpdateState

from .parameter_unscaling_optimizer import (
    _ParameterUnscalingALSOptimizer,
    _ParameterUnscalingOptimizer,
    with_scaling_arguments,
)

__all__ = ["ALSOptimizerAdam"]


class _ParameterUnscalingAdam(_ParameterUnscalingOptimizer, adam.Adam):
    """Adam for scaled gradients: the factor cancels out but for epsilon."""

    def _resource_apply_dense(
        self,
        grad: tf.Tensor,
        var: tf.Variable,
        apply_state: UpdateState | None = None,
    ) -> tf.Operation:
        known = self._coefficients(var, apply_state)
        gradient, value = tf.cast(grad, tf.float32), tf.cast(var, tf.float32)
        beta_1, beta_2 = known["beta_1_t"], known["beta_2_t"]
        m = beta_1 * self._moment(var, "m", 1) + (1 - beta_1) * gradient
        v = beta_2 * self._moment(var, "v", 2) + (1 - beta_2) * tf.square(gradient)
        rate = known["lr_t"] * tf.sqrt(1 - known["beta_2_power"])
        rate = rate / (1 - known["beta_1_power"])
        new = value - rate * m / (tf.sqrt(v) + known["epsilon"] * self._scale)
        return self._assigned(var, new, m=m, v=v)


class ALSOptimizerAdam(_ParameterUnscalingALSOptimizer):
    """Adam that scales its loss by itself."""

    _INNER_SETTINGS = ("learning_rate", "beta_1", "beta_2", "epsilon")

    @with_scaling_arguments
    def __init__(
        self,
        learning_rate: float | tf.Tensor | Callable[[], float] = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        name: str = "ALSOptimizerAdam",
        **settings: Any,
    ) -> None:
        inner = _ParameterUnscalingAdam(learning_rate, beta_1, beta_2, epsilon)
        super().__init__(inner, name=name, **settings)
