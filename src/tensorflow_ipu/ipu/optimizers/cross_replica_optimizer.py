"""An optimiser for replicated programs."""

from __future__ import annotations

from typing import Any

from tensorflow_ipu._types import GradientsAndVariables, Optimizer

from ..ops import cross_replica_ops
from .ipu_optimizer import IpuOptimizer


def apply_cross_replica_op_single(grad: Any, var: Any) -> tuple[Any, Any]:
    """The pair, with the gradient averaged over the replicas."""
    if grad is None:
        return grad, var
    return cross_replica_ops.cross_replica_mean(grad), var


def apply_cross_replica_op(
    grads_and_vars: GradientsAndVariables,
) -> list[tuple[Any, Any]]:
    """The pairs, with every gradient averaged over the replicas."""
    return [apply_cross_replica_op_single(grad, var) for grad, var in grads_and_vars]


class CrossReplicaOptimizer(IpuOptimizer):
    """Averages the gradients over the replicas before they are applied."""

    def __init__(self, opt: Optimizer, name: str = "CrossReplicaOptimizer") -> None:
        super().__init__(opt, name=name)

    def apply_gradients(
        self,
        grads_and_vars: GradientsAndVariables,
        global_step: Any = None,
        name: str | None = None,
    ) -> Any:
        """The operation that averages the gradients and applies them."""
        averaged = apply_cross_replica_op(grads_and_vars)
        return self._opt.apply_gradients(averaged, global_step, name)
