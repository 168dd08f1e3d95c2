"""Half precision as the device has it, in programs that the CPU runs.

A result too large is the largest number, or a NaN if the device is configured so: the
CPU makes an infinity of it. Sums have room for all they add up: the CPU adds in half
precision. In: an operation that a program has made. Out: the tensors that the program
goes on with; `as_on_device` calls this for every operation.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.core.framework import attr_value_pb2

from popple.marks import HALF

from .compiled import as_one_kernel, is_worth_compiling
from .made_op import MadeOp

__all__ = [
    "CHOICE_GRADIENT",
    "CONVERSION",
    "MEANT",
    "OVERFLOWING",
    "clipped_and_rounded",
    "free_of_cost",
    "rounded",
    "summed",
    "within_range",
]

_LARGEST = tf.float16.max
_GRADIENT = "PoppleHalfSaturation"
CHOICE_GRADIENT = "PoppleHalfChoice"
# Read by the cost model, for which these operations are none.
_MARKS = {HALF: attr_value_pb2.AttrValue(b=True)}
_SUMS = frozenset({"Mean", "Sum"})

# Conversions and divisions, with which programs also make infinities and mean it: of
# infinities, and by zero. These stay.
CONVERSION = "Cast"
MEANT = frozenset({CONVERSION, "Div", "DivNoNan", "RealDiv"})

# Arithmetic that makes something too large of finite numbers.
OVERFLOWING = frozenset(
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
def free_of_cost() -> Iterator[None]:
    """Operations made inside are none for the cost model."""
    graph: Any = tf.compat.v1.get_default_graph()
    with graph._attr_scope(_MARKS):
        yield


def summed(made: MadeOp) -> Sequence[tf.Tensor]:
    """The outputs of an operation; sums with room for all they add up."""
    if made.type not in _SUMS or not made.has_half_outputs:
        return made.outputs
    with made.graph._attr_scope(_MARKS):
        return [_summed(made.outputs[0].op)]


def within_range(made: MadeOp, gives_nan: bool) -> list[tf.Tensor]:
    """The outputs of an operation, those too large cut off (or a NaN)."""
    outputs = list(made.outputs)
    is_arithmetic = made.type in OVERFLOWING or made.type in MEANT
    if not is_arithmetic or not made.has_half_outputs:
        return outputs
    # The original's tests of loss scaling convert numbers too large to infinities.
    if made.type == CONVERSION and not gives_nan:
        return outputs
    gradients = {"SelectV2": CHOICE_GRADIENT}
    cut_off = _as_nan if gives_nan else clipped
    with made.graph.gradient_override_map(gradients), made.graph._attr_scope(_MARKS):
        if made.type in MEANT:
            return [_unless_meant(made.inputs, outputs[0], cut_off)]
        cut = [cut_off(x) if x.dtype == tf.float16 else x for x in outputs]
        if gives_nan:
            return cut
        return [_quickly(y, x) for x, y in zip(outputs, cut, strict=True)]


def _unless_meant(
    inputs: Sequence[tf.Tensor],
    x: tf.Tensor,
    cut_off: Callable[[tf.Tensor], tf.Tensor],
) -> tf.Tensor:
    """A quotient or a converted number within range, or infinite by intention."""
    if not inputs[0].dtype.is_floating:
        return cut_off(x)
    is_meant = tf.math.is_inf(inputs[0])
    if len(inputs) == 2:
        is_meant |= tf.equal(inputs[1], 0)
    return tf.where(is_meant, x, cut_off(x))


def _as_nan(x: tf.Tensor) -> tf.Tensor:
    no_number = tf.constant(math.nan, tf.float16)
    return tf.where(tf.math.is_inf(x), no_number, x)


def clipped(x: tf.Tensor) -> tf.Tensor:
    """What is too large for half precision is its largest number."""
    graph: Any = x.graph
    low, high = (tf.constant(limit, x.dtype) for limit in (-_LARGEST, _LARGEST))
    with graph.gradient_override_map({"ClipByValue": _GRADIENT}):
        return tf.raw_ops.ClipByValue(t=x, clip_value_min=low, clip_value_max=high)


def rounded(x: tf.Tensor) -> tf.Tensor:
    """In half precision."""
    return tf.cast(x, tf.float16)


def clipped_and_rounded(x: tf.Tensor) -> tf.Tensor:
    """In half precision, what is too large is its largest number."""
    return _quickly(rounded(clipped(x)), x)


def _quickly(cut: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """`cut`, which is `x` cut off and rounded, by one kernel where that is quicker.

    A choice that is none: gradients and the cost model go to `cut`, which nobody runs.
    """
    if cut.dtype != tf.float16 or not is_worth_compiling(x):
        return cut
    graph: Any = x.graph
    flat = _KERNEL(tf.reshape(x, [-1]))
    with graph.gradient_override_map({"SelectV2": CHOICE_GRADIENT}):
        return tf.raw_ops.SelectV2(
            condition=tf.constant(True), t=tf.reshape(flat, x.shape), e=cut
        )


def _cut_and_rounded(x: tf.Tensor) -> tf.Tensor:
    with free_of_cost():
        return tf.cast(clipped(tf.cast(x, tf.float32)), tf.float16)


_KERNEL = as_one_kernel(_cut_and_rounded)


def _summed(op: tf.Operation) -> tf.Tensor:
    """A sum, or mean, in single precision."""
    total = getattr(tf.raw_ops, op.type)(
        input=tf.cast(op.inputs[0], tf.float32),
        axis=op.inputs[1],
        keep_dims=op.get_attr("keep_dims"),
    )
    return tf.cast(total, tf.float16)


@tf.RegisterGradient(_GRADIENT)
def _passed_on(_: tf.Operation, gradient: tf.Tensor) -> list[tf.Tensor | None]:
    return [gradient, None, None]


@tf.RegisterGradient(CHOICE_GRADIENT)
def _passed_on_to_last(op: tf.Operation, gradient: tf.Tensor) -> list[tf.Tensor | None]:
    """The last is what the operation gave, whatever is chosen."""
    return [None, None, gradient]
