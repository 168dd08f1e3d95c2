"""Element types (DType) and tensor types (TensorType) of values."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from popple.errors import GraphError
from popple.quick import quick


class DType(enum.Enum):
    """Element types of the machine. There is no 64-bit type on a tile."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    F8 = "f8"
    I32 = "i32"
    U32 = "u32"
    I16 = "i16"
    I8 = "i8"
    U8 = "u8"
    BOOL = "bool"

    # Members are equal only to themselves. An Enum's own hash, that of its name, is a
    # call of Python for each of a million look-ups.
    __hash__ = object.__hash__

    @property
    def num_bytes(self) -> int:
        """Bytes of one element in tile memory."""
        return _ELEMENT_BYTES[self]

    @property
    def is_float(self) -> bool:
        """Whether elements are floating-point numbers."""
        return self in _FLOATS


_ELEMENT_BYTES = {
    DType.F32: 4,
    DType.I32: 4,
    DType.U32: 4,
    DType.F16: 2,
    DType.BF16: 2,
    DType.I16: 2,
    DType.F8: 1,
    DType.I8: 1,
    DType.U8: 1,
    DType.BOOL: 1,
}
_FLOATS = frozenset({DType.F32, DType.F16, DType.BF16, DType.F8})


@quick
@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape; scalars have the shape `()`."""

    dtype: DType
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.shape and min(self.shape) < 0:
            raise GraphError(f"shape {list(self.shape)} has a negative dimension.")

    @property
    def num_elements(self) -> int:
        """Product of the dimensions."""
        return math.prod(self.shape)

    @property
    def num_bytes(self) -> int:
        """Bytes of all elements without padding."""
        return self.num_elements * self.dtype.num_bytes

    def __str__(self) -> str:
        return f"{self.dtype.value}[{','.join(map(str, self.shape))}]"
