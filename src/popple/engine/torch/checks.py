"""Floating-point exceptions: an operator that makes an inf or a NaN is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from popple.errors import ArithmeticTrap


class FloatingPointChecks(TorchDispatchMode):
    """While active, every operator's results are looked at.

    Results that are not finite raise ArithmeticTrap if all operands were: the machine
    stops where an exception arises, not where it is passed on.
    """

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one operator and look at its results."""
        operands_are_finite = _all_finite((args, kwargs))
        result = func(*args, **(kwargs or {}))
        name = str(func)
        if operands_are_finite and "empty" not in name and not _all_finite(result):
            raise ArithmeticTrap(
                f"{name} made an infinite number or a NaN out of finite ones.",
                remedy="Scale its operands, or switch floating-point exceptions off.",
            )
        return result


def _all_finite(values: Any) -> bool:
    return all(
        bool(torch.isfinite(leaf).all())
        for leaf in pytree.tree_leaves(values)
        if isinstance(leaf, Tensor) and leaf.is_floating_point()
    )
