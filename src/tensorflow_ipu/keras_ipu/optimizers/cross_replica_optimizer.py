"""An optimiser of Keras for replicated programs, as SDK 2.1 to 3.0 had it.

Under a strategy Keras adds up the gradients of replicas when it applies them, in `fit`
as in loops of one's own, so that each replica gets the sum, with this optimiser or
without it. Programs without a strategy get the mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow.python.ipu.optimizers import cross_replica_optimizer

from tensorflow_ipu._types import GradientsAndVariables, Optimizer

from .optimizer_v2_wrapper import _OptimizerV2Wrapper, inner_optimizer

__all__ = ["CrossReplicaOptimizer"]


class CrossReplicaOptimizer(_OptimizerV2Wrapper):
    """Averages the gradients over the replicas before they are applied."""

    def __init__(self, opt: Optimizer, name: str = "CrossReplicaOptimizer") -> None:
        super().__init__(opt, name=name)

    def apply_gradients(
        self, grads_and_vars: GradientsAndVariables, **options: Any
    ) -> Any:
        """Average the gradients, and update the variables."""
        averaged = cross_replica_optimizer.apply_cross_replica_op(grads_and_vars)
        return super().apply_gradients(averaged, **options)

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Mapping[str, object] | None = None
    ) -> Optimizer:
        """The optimiser that a configuration describes."""
        inner, rest = inner_optimizer(config)
        return cls(inner, **rest)
