"""XLA's element types and the NumPy types they stand for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from tensorflow.compiler.xla import xla_data_pb2


class TypeConversionRecord(NamedTuple):
    """An element type of XLA and its counterpart in NumPy."""

    primitive_type: int
    numpy_dtype: Any


_PrimitiveType: Any = vars(xla_data_pb2)["PrimitiveType"]
_NUMPY = {
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    "S8": np.int8,
    "S16": np.int16,
    "S32": np.int32,
    "S64": np.int64,
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
    "U64": np.uint64,
    "PRED": np.bool_,
}

MAP_XLA_TYPE_TO_RECORD = {
    record.primitive_type: record
    for record in (
        TypeConversionRecord(_PrimitiveType.Value(name), dtype)
        for name, dtype in _NUMPY.items()
    )
}
MAP_DTYPE_TO_RECORD = {
    str(np.dtype(record.numpy_dtype)): record
    for record in MAP_XLA_TYPE_TO_RECORD.values()
}
