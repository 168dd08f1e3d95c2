"""An optimiser for models spread over several IPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v2 as tf

from tensorflow_ipu._types import GradientsAndVariables, Optimizer

from .. import sharding
from .ipu_optimizer import IpuOptimizer


class ShardedOptimizer(IpuOptimizer):
    """Puts gradients and updates on the IPU of what they belong to."""

    def __init__(self, optimizer: Optimizer) -> None:
        super().__init__(optimizer, name="ShardedOptimizer")

    def compute_gradients(
        self,
        loss: tf.Tensor,
        var_list: Sequence[tf.Variable] | None = None,
        **kwargs: Any,
    ) -> list[tuple[Any, Any]]:
        """Pairs of gradient and variable, on the IPUs of the forward operations."""
        kwargs["colocate_gradients_with_ops"] = True
        found = self._opt.compute_gradients(loss, var_list=var_list, **kwargs)
        sharding.propagate_sharding(tf.compat.v1.get_default_graph())
        return found

    def apply_gradients(
        self,
        grads_and_vars: GradientsAndVariables,
        global_step: tf.Variable | None = None,
        name: str | None = None,
    ) -> tf.Operation:
        """The operation that applies the gradients, each where its variable is."""
        applied = self._opt.apply_gradients(grads_and_vars, global_step, name)
        sharding.propagate_sharding(tf.compat.v1.get_default_graph())
        return applied
