"""An optimiser that makes one update out of the gradients of several batches.

For training loops of one's own inside `ipu.loops.repeat`, whose number of iterations is
a multiple of the number of batches; `fit` accumulates by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow.python.ipu import gradient_accumulation
from tensorflow.python.ipu.ops import op_util
from tensorflow.python.ipu.optimizers import gradient_accumulation_optimizer

from tensorflow_ipu._types import DTypeLike, GradientsAndVariables, Optimizer

from .optimizer_v2_wrapper import _OptimizerV2Wrapper, inner_optimizer

__all__ = ["GradientAccumulationOptimizer"]

Reduction = gradient_accumulation.GradientAccumulationReductionMethod


class GradientAccumulationOptimizer(_OptimizerV2Wrapper):
    """Accumulates the gradients of `num_mini_batches` batches, then applies them.

    `dtype` is the type of the sums (None: that of the variable; a type; or a function
    from variable to type), `reduction_method` how they are formed. The other options
    say where the device keeps the optimiser's variables, for the cost model. For one
    batch the optimiser itself is returned.
    """

    def __new__(
        cls, opt: Optimizer, num_mini_batches: int, *args: Any, **kwargs: Any
    ) -> Any:
        return opt if num_mini_batches == 1 else super().__new__(cls)

    def __init__(
        self,
        opt: Optimizer,
        num_mini_batches: int,
        offload_weight_update_variables: bool | str | None = None,
        replicated_optimizer_state_sharding: bool | str | None = False,
        dtype: DTypeLike | None = None,
        reduction_method: Any = Reduction.SUM,
        name: str = "GradientAccumulationOptimizer",
    ) -> None:
        if num_mini_batches < 1:
            raise ValueError(f"num_mini_batches must be >= 1, not {num_mini_batches}.")
        super().__init__(opt, name=name)
        self._num_mini_batches = num_mini_batches
        offload = self.bool_to_three_state(offload_weight_update_variables, None)
        self._offload_weight_update_variables = offload
        self._replicated_optimizer_state_sharding = self.bool_to_three_state(
            replicated_optimizer_state_sharding, offload
        )
        self._dtype = dtype
        self._reduction_method = Reduction.parse(reduction_method)

    @staticmethod
    def bool_to_three_state(value: bool | str | None, default: str | None) -> str:
        """The name of a choice that may be left open; names stand for themselves."""
        if isinstance(value, str):
            return value
        return op_util.bool_to_three_state(value, default)

    def apply_gradients(
        self,
        grads_and_vars: GradientsAndVariables,
        name: str | None = None,
        experimental_aggregate_gradients: bool = True,
    ) -> Any:
        """The operation that accumulates, and applies in every n-th iteration."""
        scales = gradient_accumulation_optimizer._compute_scales(
            self._reduction_method, self._num_mini_batches
        )
        totals = op_util.accumulate_gradients(
            list(grads_and_vars), self._dtype, *scales
        )
        applied: list[Any] = []

        def update(_: Any) -> None:
            done = self._apply_totals(
                totals,
                name=name,
                experimental_aggregate_gradients=experimental_aggregate_gradients,
            )
            applied.extend([] if done is None else [done])

        is_on = op_util.bool_to_three_state(True)
        return op_util.create_resource_update(
            update,
            self._name,
            applied,
            self._offload_weight_update_variables == is_on,
            self._replicated_optimizer_state_sharding == is_on,
            self._num_mini_batches,
        )

    def _apply_totals(self, totals: Any, **options: Any) -> Any:
        return self._opt.apply_gradients(totals, **options)

    def get_config(self) -> dict[str, Any]:
        """The configuration: options and the optimiser inside."""
        sharding = self._replicated_optimizer_state_sharding
        return {
            **super().get_config(),
            "num_mini_batches": self._num_mini_batches,
            "offload_weight_update_variables": self._offload_weight_update_variables,
            "replicated_optimizer_state_sharding": sharding,
            "dtype": self._dtype,
            "reduction_method": self._reduction_method,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Mapping[str, object] | None = None
    ) -> Optimizer:
        """The optimiser that a configuration describes."""
        inner, rest = inner_optimizer(config)
        return cls(inner, **rest)
