"""Layer-wise adaptive moments for large batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v2 as tf

from tensorflow_ipu._types import UpdateState

from .ipu_optimizer_base import IpuOptimizerBase, next_moments, type_name


class LAMBIpuOptimizer(IpuOptimizerBase):
    """LAMB; names that match a pattern in `exclude_from_...` are left out of it.

    Moments are computed in the first of `optimizer_compute_precisions`, the update in
    the second. `weight_norm_clip` bounds the norm of a variable in the ratio.
    """

    def __init__(
        self,
        learning_rate: float | tf.Tensor | Callable[[], float] = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-6,
        weight_decay_rate: Any = 0.0,
        exclude_from_weight_decay: Sequence[str] | None = None,
        exclude_from_layer_adaptation: Sequence[str] | None = None,
        name: str = "LAMB",
        debiasing: bool = True,
        m_dtype: Any = None,
        v_dtype: Any = None,
        weight_norm_clip: float | None = None,
        optimizer_compute_precisions: Sequence[Any] = (tf.float32, tf.float32),
        **kwargs: Any,
    ) -> None:
        if len(optimizer_compute_precisions) != 2:
            raise ValueError(
                "Must provide a list of two elements for the optimizer compute"
                " precision: that of the moments and that of the update."
            )
        super().__init__(name, optimizer_compute_precisions, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self._set_hyper("weight_decay_rate", weight_decay_rate)
        self.epsilon = epsilon
        self.exclude_from_weight_decay = exclude_from_weight_decay
        self.exclude_from_layer_adaptation = exclude_from_layer_adaptation
        self.debiasing = debiasing
        self.m_dtype = m_dtype
        self.v_dtype = v_dtype
        self.weight_norm_clip = weight_norm_clip

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        for name, dtype in (("m", self.m_dtype), ("v", self.v_dtype)):
            for var in var_list:
                self._add_state(var, name, dtype)

    def _resource_apply_dense(
        self,
        grad: tf.Tensor,
        var: tf.Variable,
        apply_state: UpdateState | None = None,
    ) -> tf.Operation:
        del apply_state
        compute, last = self.opt_dtypes
        betas = (self._get_hyper("beta_1", compute), self._get_hyper("beta_2", compute))
        step = tf.cast(self.iterations + 1, compute) if self.debiasing else None
        rate = self._decayed_lr(compute)
        decay = self._get_hyper("weight_decay_rate", compute)
        title = var.name.partition(":")[0]
        states = [self.get_slot(var, name) for name in ("m", "v")]

        def update(grad: tf.Tensor, value: Any, *kept: Any) -> list[Any]:
            grad, weights, first, second = (
                tf.cast(tensor, compute) for tensor in (grad, value, *kept)
            )
            found = next_moments(grad, (first, second), betas, step)
            change = found.first_corrected / (
                tf.sqrt(found.second_corrected) + self.epsilon
            )
            if not _matches(title, self.exclude_from_weight_decay):
                change += decay * weights
            ratio = rate
            if not _matches(title, self.exclude_from_layer_adaptation):
                ratio = rate * _trust(weights, change, self.weight_norm_clip)
            step_taken = tf.cast(ratio, last) * tf.cast(change, last)
            changed = value - tf.cast(step_taken, value.dtype)
            return [changed, found.first, found.second]

        found = self._update(update, grad, var, *states)
        return tf.group(
            *(
                target.assign(tf.cast(value, target.dtype))
                for target, value in zip([var, *states], found, strict=True)
            )
        )

    def get_config(self) -> dict[str, Any]:
        hypers = ("learning_rate", "decay", "beta_1", "beta_2", "weight_decay_rate")
        plain = (
            "epsilon",
            "exclude_from_weight_decay",
            "exclude_from_layer_adaptation",
            "debiasing",
            "weight_norm_clip",
        )
        return {
            **super().get_config(),
            **{name: self._serialize_hyperparameter(name) for name in hypers},
            **{name: getattr(self, name) for name in plain},
            "m_dtype": type_name(self.m_dtype),
            "v_dtype": type_name(self.v_dtype),
        }


def _trust(weights: Any, change: Any, clip: float | None) -> tf.Tensor:
    """The norm of the weights over that of the change; 1 where either is 0."""
    weight_norm, change_norm = tf.norm(weights), tf.norm(change)
    if clip is not None:
        weight_norm = tf.minimum(weight_norm, tf.cast(clip, weight_norm.dtype))
    both = tf.logical_and(weight_norm > 0, change_norm > 0)
    return tf.where(both, tf.math.divide_no_nan(weight_norm, change_norm), 1.0)


def _matches(name: str, patterns: Sequence[str] | None) -> bool:
    return any(re.search(pattern, name) for pattern in patterns or ())
