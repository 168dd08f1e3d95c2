"""Half precision as the device has it, in programs that the CPU runs.

A result too large is the largest number, or a NaN if the device is configured so: the
CPU makes an infinity of it. Sums have room for all they add up: the CPU adds in half
precision. In: the operations that a program makes, in half precision. Out: what
the program goes on with. Gradients pass as if nothing was, and so does the cost.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context, record

from .. import _device

__all__ = ["free_of_cost", "is_saturating", "saturating"]

_LARGEST = tf.float16.max
_GRADIENT = "PoppleHalfSaturation"
_CHOICE_GRADIENT = "PoppleHalfChoice"
# Read by the cost model, for which these operations are none.
_MARKS = {"_ipu_half": attr_value_pb2.AttrValue(b=True)}
_SUMS = frozenset({"Mean", "Sum"})

# Conversions and divisions, with which programs also make infinities and mean it: of
# infinities, and by zero. These stay.
_CONVERSION = "Cast"
_MEANT = frozenset({_CONVERSION, "Div", "DivNoNan", "RealDiv"})

# Arithmetic that makes something too large of finite numbers.
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
    if is_saturating():
        yield
        return
    current.add_op_callback(_as_on_device)
    try:
        yield
    finally:
        current.remove_op_callback(_as_on_device)


def is_saturating() -> bool:
    """Whether operations made now have half precision as the device does."""
    return _as_on_device in context.context().op_callbacks


@contextlib.contextmanager
def free_of_cost() -> Iterator[None]:
    """Operations made inside are none for the cost model."""
    graph: Any = tf.compat.v1.get_default_graph()
    with graph._attr_scope(_MARKS):
        yield


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
    if graph is None or (op_type not in _OVERFLOWING and op_type not in _MEANT):
        return outputs
    if not any(output.dtype == tf.float16 for output in outputs):
        return outputs
    # The original's tests of loss scaling convert numbers too large to infinities.
    if op_type == _CONVERSION and not _gives_nan():
        return outputs
    gradients = {"ClipByValue": _GRADIENT, "SelectV2": _CHOICE_GRADIENT}
    # Tapes record what is returned as the output of the operation itself.
    with (
        record.stop_recording(),
        graph.gradient_override_map(gradients),
        graph._attr_scope(_MARKS),
    ):
        if op_type in _MEANT:
            return [_unless_meant(inputs, outputs[0])]
        if op_type in _SUMS:
            outputs = [_summed(outputs[0].op)]
        return [_within_range(x) if x.dtype == tf.float16 else x for x in outputs]


def _unless_meant(inputs: Sequence[Any], x: Any) -> Any:
    """A quotient or a converted number within range, or infinite by intention."""
    if not inputs[0].dtype.is_floating:
        return _within_range(x)
    is_meant = tf.math.is_inf(inputs[0])
    if len(inputs) == 2:
        is_meant |= tf.equal(inputs[1], 0)
    return tf.where(is_meant, x, _within_range(x))


def _within_range(x: Any) -> Any:
    if _gives_nan():
        no_number = tf.constant(math.nan, tf.float16)
        return tf.where(tf.math.is_inf(x), no_number, x)
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


@tf.RegisterGradient(_CHOICE_GRADIENT)
def _passed_on_to_last(op: Any, gradient: Any) -> list[Any]:
    """The last is what the operation gave, whatever is chosen."""
    return [None, None, gradient]
