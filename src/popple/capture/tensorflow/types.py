"""Element types and shapes of TensorFlow as the machine sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from popple.graph import DType, TensorType

# By the names TensorFlow gives them. Types not listed are stored as integers.
_DTYPES = {
    "float32": DType.F32,
    "float64": DType.F32,  # there is no 64-bit type on a tile
    "float16": DType.F16,
    "bfloat16": DType.BF16,
    "float8_e5m2": DType.F8,
    "float8_e4m3fn": DType.F8,
    "int64": DType.I32,
    "int32": DType.I32,
    "uint32": DType.U32,
    "uint64": DType.U32,
    "int16": DType.I16,
    "uint16": DType.I16,
    "int8": DType.I8,
    "uint8": DType.U8,
    "qint8": DType.I8,
    "quint8": DType.U8,
    "bool": DType.BOOL,
}
# No tile instruction knows complex numbers: they are stored as real and imaginary part.
_COMPLEX = frozenset({"complex64", "complex128"})
# Handles, lists and text exist on the host and in the compiler only.
_ELSEWHERE = frozenset({"resource", "variant", "string"})


def is_on_machine(dtype: Any) -> bool:
    """Whether tensors of this type are numbers, which a tile can hold."""
    return _name(dtype) not in _ELSEWHERE


def tensor_type(dtype: Any, shape: Sequence[int]) -> TensorType:
    """The machine's type of a tensor; complex numbers become pairs."""
    name, dims = _name(dtype), tuple(int(dim) for dim in shape)
    if name in _COMPLEX:
        return TensorType(DType.F32, (*dims, 2))
    return TensorType(_DTYPES.get(name, DType.I32), dims)


def _name(dtype: Any) -> str:
    """Name of a TensorFlow or NumPy type; references are read through."""
    return str(getattr(dtype, "name", dtype)).removesuffix("_ref")
