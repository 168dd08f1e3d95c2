"""Optimisers that apply the gradients of several batches at once.

They must be used inside `ipu.loops.repeat`, whose number of iterations is a multiple of
the number of batches.
"""

from __future__ import annotations

from typing import Any

from tensorflow.python.training import gradient_descent, momentum

from tensorflow_ipu._translate import note_if_set
from tensorflow_ipu._types import DTypeLike, GradientsAndVariables, Optimizer

from ..gradient_accumulation import GradientAccumulationReductionMethod
from ..ops import internal_ops, op_util
from ..ops._pipeline import accumulation
from .cross_replica_optimizer import CrossReplicaOptimizer
from .ipu_optimizer import IpuOptimizer

_SUM = GradientAccumulationReductionMethod.SUM
_V2 = "GradientAccumulationOptimizerV2"


def _compute_scales(
    reduction_method: GradientAccumulationReductionMethod | str, num_mini_batches: int
) -> tuple[Any, Any]:
    """Factors of the sum and of the new gradient in this iteration of the loop."""
    method = GradientAccumulationReductionMethod.parse(reduction_method)
    position = internal_ops.get_current_iteration_counter() % num_mini_batches
    return accumulation.scales(method, position, num_mini_batches)


def _checked_count(num_mini_batches: int) -> int:
    if num_mini_batches < 1:
        raise ValueError(
            f"num_mini_batches must be a positive number; it is {num_mini_batches}."
        )
    return num_mini_batches


class GradientAccumulationOptimizerV2(IpuOptimizer):
    """Accumulates the gradients of `num_mini_batches` batches, then applies them.

    `dtype` is the type of the sums (None: that of the variable; a type; or a function
    from variable to type), `reduction_method` how they are formed. The other options
    say where the device keeps the optimiser's variables, for the cost model.
    """

    def __init__(
        self,
        opt: Optimizer,
        num_mini_batches: int,
        offload_weight_update_variables: bool | None = None,
        replicated_optimizer_state_sharding: bool | None = False,
        dtype: DTypeLike | None = None,
        reduction_method: GradientAccumulationReductionMethod | str = _SUM,
        name: str = "GradientAccumulationOptimizerV2",
    ) -> None:
        super().__init__(opt, name=name)
        note_if_set(_V2, name=(name, type(self).__name__))
        self._num_mini_batches = _checked_count(num_mini_batches)
        self._offload_weight_update_variables = offload_weight_update_variables
        self._replicated_optimizer_state_sharding = replicated_optimizer_state_sharding
        self._dtype = dtype
        self._reduction_method = GradientAccumulationReductionMethod.parse(
            reduction_method
        )

    def apply_gradients(
        self,
        grads_and_vars: GradientsAndVariables,
        global_step: Any = None,
        name: str | None = None,
    ) -> Any:
        """The operation that accumulates, and applies in every n-th iteration."""
        accum_scale, grad_scale = _compute_scales(
            self._reduction_method, self._num_mini_batches
        )
        totals = op_util.accumulate_gradients(
            grads_and_vars, self._dtype, accum_scale, grad_scale
        )
        applied: list[Any] = []

        def update(_: Any) -> None:
            operation = self._opt.apply_gradients(totals, global_step, name)
            applied.extend([] if operation is None else [operation])

        return op_util.create_resource_update(
            update,
            self._opt.get_name(),
            applied,
            self._offload_weight_update_variables,
            self._replicated_optimizer_state_sharding,
            self._num_mini_batches,
        )


class CrossReplicaGradientAccumulationOptimizerV2(IpuOptimizer):
    """The same, with the sums averaged over the replicas when they are applied."""

    def __init__(
        self,
        opt: Optimizer,
        num_mini_batches: int,
        offload_weight_update_variables: bool | None = None,
        replicated_optimizer_state_sharding: bool | None = False,
        dtype: DTypeLike | None = None,
        reduction_method: GradientAccumulationReductionMethod | str = _SUM,
        name: str = "CrossReplicaGradientAccumulationOptimizerV2",
    ) -> None:
        accumulating = GradientAccumulationOptimizerV2(
            CrossReplicaOptimizer(opt),
            num_mini_batches,
            offload_weight_update_variables,
            replicated_optimizer_state_sharding,
            dtype,
            reduction_method,
            name,
        )
        super().__init__(accumulating, name)


class GradientAccumulationOptimizer(GradientAccumulationOptimizerV2):
    """The older form, for gradient descent and momentum only.

    `verify_usage=False` lets it wrap other optimisers.
    """

    def __init__(
        self,
        opt: Optimizer,
        num_mini_batches: int,
        verify_usage: bool = True,
        name: str = "GradientAccumulationOptimizer",
    ) -> None:
        super().__init__(opt, num_mini_batches, name=name)
        kinds = (
            gradient_descent.GradientDescentOptimizer,
            momentum.MomentumOptimizer,
            CrossReplicaOptimizer,
        )
        if verify_usage and not isinstance(opt, kinds):
            raise ValueError(
                "GradientAccumulationOptimizer only supports GradientDescentOptimizer "
                f"and MomentumOptimizer, and was given {type(opt).__name__}. Use "
                "GradientAccumulationOptimizerV2, or pass verify_usage=False."
            )


class CrossReplicaGradientAccumulationOptimizer(IpuOptimizer):
    """The older form, with the sums averaged over the replicas."""

    def __init__(
        self,
        opt: Optimizer,
        num_mini_batches: int,
        verify_usage: bool = True,
        name: str = "CrossReplicaGradientAccumulationOptimizer",
    ) -> None:
        accumulating = GradientAccumulationOptimizer(
            CrossReplicaOptimizer(opt), num_mini_batches, verify_usage, name
        )
        super().__init__(accumulating, name)
