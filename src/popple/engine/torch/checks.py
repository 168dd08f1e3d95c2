"""Floating-point exceptions: an operator that makes an inf or a NaN is an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from popple.errors import ArithmeticTrap


class FloatingPointChecks(TorchDispatchMode):
    """While active, every operator's results are looked at.

    An infinite result raises ArithmeticTrap if all operands were finite, a NaN if no
    operand was one: the machine stops where an exception arises, not where it is
    passed on. Asking which of two numbers is larger is an exception if one is a NaN.
    A negative power of 0 is none, only a division is: graph convolutions take such
    powers and replace the infinite ones.
    """

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one operator and look at its results."""
        # Before the call: an operator in place may overwrite its operands.
        had_nan, had_inf = _found((args, kwargs))
        if had_nan and _is_order(func):
            raise ArithmeticTrap(
                f"{func} compared a NaN.",
                remedy="Find what made it, or switch floating-point exceptions off.",
            )
        is_pole = _poles(func, args)
        result = func(*args, **(kwargs or {}))
        # Memory that was never written may hold anything; it is looked at once it is
        # used.
        if had_nan or _is_uninitialised(func):
            return result
        has_nan, has_inf = _found(
            result if is_pole is None else result.masked_fill(is_pole, 0.0)
        )
        if has_nan or (has_inf and not had_inf):
            raise ArithmeticTrap(
                f"{func} made {'a NaN' if has_nan else 'an infinite number'}.",
                remedy="Scale its operands, or switch floating-point exceptions off.",
            )
        return result


def _name(func: Callable[..., Any]) -> str:
    """`pow` of `aten.pow_.Scalar`."""
    return str(func).split(".")[1].rstrip("_")


def _is_order(func: Callable[..., Any]) -> bool:
    """Whether the operator tells which is larger: `aten.gt.Tensor`."""
    return _name(func) in ("lt", "le", "gt", "ge")


def _poles(func: Callable[..., Any], args: tuple[Any, ...]) -> Tensor | None:
    """Where the base of a power is 0, as it is before the power may overwrite it."""
    is_power = _name(func) == "pow" and isinstance(args[0], Tensor)
    return args[0] == 0 if is_power else None


def _is_uninitialised(func: Callable[..., Any]) -> bool:
    """Whether the operator returns memory as it is: `aten.empty_like.default`."""
    return "empty" in str(func)


def _found(values: Any) -> tuple[bool, bool]:
    """Whether there is a NaN, and an infinite number, among tensors and numbers."""
    sums = list(_sums_of_magnitudes(pytree.tree_leaves(values)))
    return any(map(math.isnan, sums)), any(map(math.isinf, sums))


def _sums_of_magnitudes(leaves: list[Any]) -> Iterator[float]:
    for leaf in leaves:
        if isinstance(leaf, float):
            yield abs(leaf)
        elif isinstance(leaf, Tensor) and leaf.is_floating_point():
            # One sum finds both kinds in one pass. In float64 because a sum of large
            # finite float32 numbers could overflow by itself.
            yield float(leaf.abs().sum(dtype=torch.float64))
