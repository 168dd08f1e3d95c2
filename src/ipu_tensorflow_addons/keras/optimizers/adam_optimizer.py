"""Adam with state of any type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import tensorflow.compat.v2 as tf

from tensorflow_ipu._types import UpdateState

from .ipu_optimizer_base import LEGACY, IpuOptimizerBase, next_moments, type_name


class AdamIpuOptimizer(LEGACY.Adam, IpuOptimizerBase):
    """Adam; `m_dtype`, `v_dtype` and `vhat_dtype` are the types of its state.

    Without `debiasing` the moments are not corrected for starting from zero.
    """

    def __init__(
        self,
        learning_rate: float | tf.Tensor | Callable[[], float] = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        name: str = "Adam",
        m_dtype: Any = None,
        v_dtype: Any = None,
        vhat_dtype: Any = None,
        debiasing: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate, beta_1, beta_2, epsilon, amsgrad, name, **kwargs
        )
        self.m_dtype = m_dtype
        self.v_dtype = v_dtype
        self.vhat_dtype = vhat_dtype
        self.debiasing = debiasing

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        names = {"m": self.m_dtype, "v": self.v_dtype}
        if self.amsgrad:
            names["vhat"] = self.vhat_dtype
        for name, dtype in names.items():
            for var in var_list:
                self._add_state(var, name, dtype)

    def _resource_apply_dense(
        self,
        grad: tf.Tensor,
        var: tf.Variable,
        apply_state: UpdateState | None = None,
    ) -> tf.Operation:
        del apply_state
        compute = self.opt_dtypes[0]
        betas = (self._get_hyper("beta_1", compute), self._get_hyper("beta_2", compute))
        step = tf.cast(self.iterations + 1, compute) if self.debiasing else None
        rate = self._decayed_lr(compute)
        states = [self.get_slot(var, name) for name in ("m", "v")]
        states += [self.get_slot(var, "vhat")] if self.amsgrad else []

        def update(grad: tf.Tensor, value: Any, *kept: Any) -> list[Any]:
            grad, *old = (tf.cast(tensor, compute) for tensor in (grad, *kept))
            found = next_moments(grad, (old[0], old[1]), betas, step)
            largest = found.second_corrected
            if self.amsgrad:
                largest = tf.maximum(old[2], largest)
            change = found.first_corrected / (tf.sqrt(largest) + self.epsilon)
            changed = value - tf.cast(rate * change, value.dtype)
            return [changed, found.first, found.second, largest][: 1 + len(kept)]

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

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "m_dtype": type_name(self.m_dtype),
            "v_dtype": type_name(self.v_dtype),
            "vhat_dtype": type_name(self.vhat_dtype),
            "debiasing": self.debiasing,
        }
