"""Element types of products and sums."""

from __future__ import annotations

from popple.errors import PlanError, suggest
from popple.graph import DType

_PARTIALS = {"f32": DType.F32, "f16": DType.F16}


def widest_type(*dtypes: DType) -> DType:
    """The type operands are multiplied in: a float before an integer, then wider."""
    return max(dtypes, key=lambda dtype: (dtype.is_float, dtype.num_bytes))


def choose_partials(dtype: DType, wish: str) -> DType:
    """The type partial sums are kept in: never narrower than the operands.

    FP8 units sum in half precision whatever one wishes.
    """
    if wish not in _PARTIALS:
        raise PlanError(
            f"partials cannot be {wish!r}.", remedy=suggest(wish, _PARTIALS)
        )
    if dtype is DType.F8:
        return DType.F16
    # Sums are never narrower than operands; those of integers are words as well.
    if not dtype.is_float or dtype is DType.F32:
        return DType.F32
    return _PARTIALS[wish]
