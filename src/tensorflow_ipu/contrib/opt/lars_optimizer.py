"""Layer-wise adaptive rate scaling, an optimiser for large batches.

The rate of each weight is scaled by the ratio of its norm to that of its gradient, as
in You, Gitman and Ginsburg, "Large Batch Training of Convolutional Networks", 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import gen_training_ops as training_ops

__all__ = ["LARSOptimizer"]


class LARSOptimizer(tf.train.Optimizer):
    """Momentum with a rate for each weight; those in `skip_list` have the plain one."""

    def __init__(
        self,
        learning_rate: Any,
        momentum: float = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Sequence[str] | None = None,
        use_nesterov: bool = False,
    ) -> None:
        if momentum < 0:
            raise ValueError(f"momentum must not be negative, but is {momentum}.")
        super().__init__(False, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._weight_decay = weight_decay
        self._eeta = eeta
        self._epsilon = epsilon
        self._skip_list = tuple(skip_list or ())
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "momentum", self._name)

    def compute_lr(self, grad: tf.Tensor, var: tf.Variable) -> tuple[Any, Any]:
        """The rate of a weight, and its gradient with the decay of the weight."""
        if any(word in var.name for word in self._skip_list):
            return self._learning_rate, grad
        of_weight, of_gradient = tf.norm(var, ord=2), tf.norm(grad, ord=2)
        decayed = of_gradient + self._weight_decay * of_weight + self._epsilon
        ratio = self._eeta * of_weight / decayed
        is_known = (of_weight > 0) & (of_gradient > 0)
        rate = self._learning_rate * tf.where(is_known, ratio, tf.ones_like(ratio))
        return rate, grad + self._weight_decay * var

    def _resource_apply_dense(self, grad: tf.Tensor, var: tf.Variable) -> tf.Operation:
        rate, gradient = self.compute_lr(grad, var)
        return training_ops.resource_apply_momentum(
            var.handle,
            self.get_slot(var, "momentum").handle,
            tf.cast(rate, var.dtype.base_dtype),
            gradient,
            tf.cast(self._momentum, var.dtype.base_dtype),
            use_locking=False,
            use_nesterov=self._use_nesterov,
        )

    def _apply_dense(self, grad: tf.Tensor, var: tf.Variable) -> tf.Operation:
        rate, gradient = self.compute_lr(grad, var)
        return training_ops.apply_momentum(
            var,
            self.get_slot(var, "momentum"),
            tf.cast(rate, var.dtype.base_dtype),
            gradient,
            tf.cast(self._momentum, var.dtype.base_dtype),
            use_locking=False,
            use_nesterov=self._use_nesterov,
        ).op
