"""Optimisers that change gradients before they are applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_ipu._types import GradientsAndVariables

from .ipu_optimizer import IpuOptimizer

Mapping = Callable[[Any, Any], Any]


def _mapped(
    function: Mapping, grads_and_vars: GradientsAndVariables
) -> list[tuple[Any, Any]]:
    return [(function(grad, var.value()), var) for grad, var in grads_and_vars]


class MapGradientOptimizer(IpuOptimizer):
    """Applies `function(gradient, variable)` to gradients when they are computed."""

    def __init__(
        self,
        wrapped_optimizer: Any,
        gradient_mapping_function: Mapping,
        name: str = "MapGradientOptimizer",
    ) -> None:
        super().__init__(wrapped_optimizer, name=name)
        self._gradient_mapping_function = gradient_mapping_function

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Pairs of changed gradient and variable."""
        found = self._opt.compute_gradients(*args, **kwargs)
        return _mapped(self._gradient_mapping_function, found)


class _MapGradientOptimizerInvertedChaining(IpuOptimizer):
    """Applies the function to gradients just before the wrapped optimiser does."""

    def __init__(
        self,
        wrapped_optimizer: Any,
        gradient_mapping_function: Mapping,
        name: str = "MapGradientOptimizerInvertedChaining",
    ) -> None:
        super().__init__(wrapped_optimizer, name=name)
        self._gradient_mapping_function = gradient_mapping_function

    def apply_gradients(
        self,
        grads_and_vars: GradientsAndVariables,
        global_step: Any = None,
        name: str | None = None,
    ) -> Any:
        changed = _mapped(self._gradient_mapping_function, grads_and_vars)
        return self._opt.apply_gradients(changed, global_step=global_step, name=name)
