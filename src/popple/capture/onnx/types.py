"""Types of values as ONNX describes them."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import TensorProto, ValueInfoProto, helper

from popple.graph import DType, Value

_ELEMENT_TYPES: Mapping[DType, int] = {
    DType.F32: TensorProto.FLOAT,
    DType.F16: TensorProto.FLOAT16,
    DType.BF16: TensorProto.BFLOAT16,
    # A Graph does not tell the machine's two formats of eight bits apart; ONNX does.
    DType.F8: TensorProto.FLOAT8E4M3FN,
    DType.I32: TensorProto.INT32,
    DType.U32: TensorProto.UINT32,
    DType.I16: TensorProto.INT16,
    DType.I8: TensorProto.INT8,
    DType.U8: TensorProto.UINT8,
    DType.BOOL: TensorProto.BOOL,
}


def element_type(dtype: DType) -> int:
    """The number ONNX has for an element type."""
    return _ELEMENT_TYPES[dtype]


def make_value_info(value: Value) -> ValueInfoProto:
    """Name, element type and shape of a value."""
    kind = value.type
    return helper.make_tensor_value_info(
        value.name, element_type(kind.dtype), kind.shape
    )
