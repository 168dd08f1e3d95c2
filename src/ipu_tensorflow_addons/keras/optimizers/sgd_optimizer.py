"""Gradient descent with a momentum of any type."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from .ipu_optimizer_base import LEGACY, IpuOptimizerBase, type_name


class SGDIpuOptimizer(LEGACY.SGD, IpuOptimizerBase):
    """Gradient descent; `momentum_accum_dtype` is the type of its state."""

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: Any = 0.0,
        nesterov: bool = False,
        name: str = "SGD",
        momentum_accum_dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, momentum, nesterov, name, **kwargs)
        self.momentum_accum_dtype = momentum_accum_dtype

    def _create_slots(self, var_list: Any) -> None:
        if self._momentum:
            for var in var_list:
                self._add_state(var, "momentum", self.momentum_accum_dtype)

    def _resource_apply_dense(
        self, grad: Any, var: Any, apply_state: Any = None
    ) -> Any:
        del apply_state
        compute = self.opt_dtypes[0]
        rate = self._decayed_lr(compute)
        states = [self.get_slot(var, "momentum")] if self._momentum else []
        momentum = self._get_hyper("momentum", compute)

        def update(grad: Any, value: Any, *kept: Any) -> list[Any]:
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
        self, grad: Any, var: Any, indices: Any, apply_state: Any = None
    ) -> Any:
        return IpuOptimizerBase._resource_apply_sparse(self, grad, var, indices)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Any, var: Any, indices: Any, **kwargs: Any
    ) -> Any:
        del kwargs
        return IpuOptimizerBase._resource_apply_sparse(self, grad, var, indices)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "momentum_accum_dtype": type_name(self.momentum_accum_dtype),
        }
