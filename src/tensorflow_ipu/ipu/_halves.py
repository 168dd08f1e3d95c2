"""Half precision as the device has it, in programs that the CPU runs.

A result too large is the largest number: the CPU makes an infinity of it, and the next
operation, more often than not, a NaN. Sums have room for all they add up: the CPU adds
in half precision. In: the operations that a program makes, in half precision. Out: what
the program goes on with. Gradients pass as if nothing was, and so does the cost.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context, record

from . import _device

__all__ = ["saturating"]

_LARGEST = tf.float16.max
_CUT = "ClipByValue"
_GRADIENT = "PoppleHalfSaturation"
# Read by the cost model, for which these operations are none.
_MARKS = {"_ipu_half": attr_value_pb2.AttrValue(b=True)}
_SUMS = frozenset({"Mean", "Sum"})

# Arithmetic that makes something too large of finite numbers. Divisions and conversions
# are left out: programs make infinities with them, and mean it.
_OVERFLOWING = frozenset(
    {
        "Add",
        "AddN",
        "AddV2",
        "BatchMatMul",
        "BatchMatMulV2",
        "BatchMatMulV3",
        "BiasAdd",
        "BiasAddGrad",
        "Conv2D",
        "Conv2DBackpropFilter",
        "Conv2DBackpropInput",
        "Conv3D",
        "Conv3DBackpropFilterV2",
        "Conv3DBackpropInputV2",
        "Cumprod",
        "Cumsum",
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropFilter",
        "DepthwiseConv2dNativeBackpropInput",
        "Einsum",
        "Exp",
        "Expm1",
        "MatMul",
        "Mean",
        "Mul",
        "Pow",
        "Prod",
        "Square",
        "SquaredDifference",
        "Sub",
        "Sum",
        "UnsortedSegmentSum",
    }
)


@contextlib.contextmanager
def saturating() -> Iterator[None]:
    """Operations made inside have half precision as the device is configured to."""
    current: Any = context.context()
    if _gives_nan() or _as_on_device in current.op_callbacks:
        yield
        return
    current.add_op_callback(_as_on_device)
    try:
        yield
    finally:
        current.remove_op_callback(_as_on_device)


def _gives_nan() -> bool:
    """Whether the device is configured to answer an overflow with a NaN."""
    return bool(_device.get_options().floating_point_behaviour.nanoo)


def _as_on_device(
    op_type: str,
    inputs: Sequence[Any],
    attrs: Any,
    outputs: Sequence[Any],
    op_name: str | None = None,
    graph: Any = None,
) -> list[Any]:
    """The outputs of a new operation; TensorFlow goes on with what is returned."""
    # A list, as operations give it: Keras changes some in place.
    outputs = list(outputs)
    if graph is None or op_type not in _OVERFLOWING:
        return outputs
    if not any(output.dtype == tf.float16 for output in outputs):
        return outputs
    # Tapes record what is returned as the output of the operation itself.
    with (
        record.stop_recording(),
        graph.gradient_override_map({_CUT: _GRADIENT}),
        graph._attr_scope(_MARKS),
    ):
        if op_type in _SUMS:
            outputs = [_summed(outputs[0].op)]
        return [_within_range(x) if x.dtype == tf.float16 else x for x in outputs]


def _within_range(x: Any) -> Any:
    return tf.raw_ops.ClipByValue(
        t=x,
        clip_value_min=tf.constant(-_LARGEST, tf.float16),
        clip_value_max=tf.constant(_LARGEST, tf.float16),
    )


def _summed(op: Any) -> Any:
    """A sum, or mean, in single precision."""
    total = getattr(tf.raw_ops, op.type)(
        input=tf.cast(op.inputs[0], tf.float32),
        axis=op.inputs[1],
        keep_dims=op.get_attr("keep_dims"),
    )
    return tf.cast(total, tf.float16)


@tf.RegisterGradient(_GRADIENT)
def _passed_on(_: Any, gradient: Any) -> list[Any]:
    return [gradient, None, None]
