"""Gradient descent with a momentum of any type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import tensorflow.compat.v2 as tf

from tensorflow_ipu._types import UpdateState

from .ipu_optimizer_base import LEGACY, IpuOptimizerBase, type_name


class SGDIpuOptimizer(LEGACY.SGD, IpuOptimizerBase):
    """Gradient descent; `momentum_accum_dtype` is the type of its state."""

    def __init__(
        self,
        learning_rate: float | tf.Tensor | Callable[[], float] = 0.01,
        momentum: Any = 0.0,
        nesterov: bool = False,
        name: str = "SGD",
        momentum_accum_dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, momentum, nesterov, name, **kwargs)
        self.momentum_accum_dtype = momentum_accum_dtype

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        if self._momentum:
            for var in var_list:
                self._add_state(var, "momentum", self.momentum_accum_dtype)

    def _resource_apply_dense(
        self,
        grad: tf.Tensor,
        var: tf.Variable,
        apply_state: UpdateState | None = None,
    ) -> tf.Operation:
        del apply_state
        compute = self.opt_dtypes[0]
        rate = self._decayed_lr(compute)
        states = [self.get_slot(var, "momentum")] if self._momentum else []
        momentum = self._get_hyper("momentum", compute)

        def update(grad: tf.Tensor, value: Any, *kept: Any) -> list[Any]:
            change = -rate * tf.cast(grad, compute)
            speeds = [momentum * tf.cast(speed, compute) + change for speed in kept]
            if speeds:
                change = momentum * speeds[0] + change if self.nesterov else speeds[0]
            return [value + tf.cast(change, value.dtype), *speeds]

        found = self._update(update, grad, var, *states)
        return tf.group(
            *(
                target.assign(tf.cast(value, target.dtype))
                for target, value in zip([var, *states], found, strict=True)
            )
        )

    def _resource_apply_sparse(
        self,
        grad: tf.Tensor,
        var: tf.Variable,
        indices: tf.Tensor,
        apply_state: UpdateState | None = None,
    ) -> NoReturn:
        return IpuOptimizerBase._resource_apply_sparse(self, grad, var, indices)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: tf.Tensor, var: tf.Variable, indices: tf.Tensor, **kwargs: Any
    ) -> NoReturn:
        del kwargs
        return IpuOptimizerBase._resource_apply_sparse(self, grad, var, indices)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "momentum_accum_dtype": type_name(self.momentum_accum_dtype),
        }
