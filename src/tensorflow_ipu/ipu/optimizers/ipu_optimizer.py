"""The base of optimisers that wrap another one."""

from __future__ import annotations

from typing import Any

from tensorflow.python.training import optimizer

from tensorflow_ipu._types import GradientsAndVariables, Optimizer

from ..ops._pipeline.optimizer_function import is_optimizer_v2


class IpuOptimizer(optimizer.Optimizer):
    """An optimiser that leaves everything to the optimiser it wraps.

    Subclasses change what they are about: the gradients on their way, or when they are
    applied.
    """

    def __init__(self, opt: Optimizer, name: str | None = None) -> None:
        if is_optimizer_v2(opt):
            raise ValueError(
                f"{type(self).__name__} wraps optimizers of TensorFlow 1; for Keras "
                f"optimizers such as {type(opt).__name__} use keras.ipu.optimizers."
            )
        super().__init__(False, name=name or type(self).__name__)
        self._opt = opt

    def get_name(self) -> str:
        """The name of the wrapped optimiser."""
        return self._opt.get_name()

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """A slot variable of the wrapped optimiser."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """The names of the wrapped optimiser's slots."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Any]:
        """The variables of the wrapped optimiser."""
        return self._opt.variables()

    def apply_gradients(
        self,
        grads_and_vars: GradientsAndVariables,
        global_step: Any = None,
        name: str | None = None,
    ) -> Any:
        """The operation that applies gradients to variables."""
        return self._opt.apply_gradients(grads_and_vars, global_step, name)

    def compute_gradients(
        self, loss: Any, var_list: Any = None, **kwargs: Any
    ) -> list[tuple[Any, Any]]:
        """Pairs of gradient and variable."""
        return self._opt.compute_gradients(loss, var_list=var_list, **kwargs)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._opt._apply_dense(grad, var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return self._opt._resource_apply_dense(grad, handle)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._opt._apply_sparse(grad, var)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._opt._resource_apply_sparse(grad, handle, indices)
