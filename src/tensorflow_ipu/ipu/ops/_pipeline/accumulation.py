"""Gradients of several batches added up: scales, types and sums.

`scales` says by what the accumulated gradient and the new one are multiplied before
they are added. These are pure functions of tensors; where the sums are kept between
batches is the business of their users.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from ...gradient_accumulation import GradientAccumulationReductionMethod
from .._tensors import Dtype, Tensor

Scale = Any
"""A number, a float32 scalar, or None for 1."""


def scales(
    method: GradientAccumulationReductionMethod, position: Tensor, count: Any
) -> tuple[Scale, Scale]:
    """The factors of the sum and of the gradient at `position` out of `count`."""
    if method is GradientAccumulationReductionMethod.SUM:
        return None, None
    if method is GradientAccumulationReductionMethod.MEAN:
        return None, 1.0 / tf.cast(count, tf.float32)
    n = tf.cast(position, tf.float32)
    # The mean of n + 1 numbers, from that of n and one more: no sum that could
    # overflow.
    share = 1.0 / (n + 1.0)
    return n * share, share


def accumulator_dtype(variable: tf.Variable, override: Any) -> Dtype:
    """The type in which gradients of `variable` are added.

    `override` is None for the variable's own type, a type, or a function of the
    variable.
    """
    if override is None:
        return variable.dtype.base_dtype
    try:
        # Types come first: a DType can be called too.
        return tf.as_dtype(override)
    except TypeError:
        if not callable(override):
            raise
    return tf.as_dtype(override(variable))


def scaled(tensor: Tensor, scale: Scale) -> Tensor:
    """`tensor * scale` in the tensor's type."""
    if scale is None or (isinstance(scale, float) and scale == 1.0):
        return tensor
    return tensor * tf.cast(scale, tensor.dtype)


def contribution(gradient: tf.Tensor, scale: Scale, dtype: Dtype) -> Tensor:
    """What a gradient adds to its sum, as a dense tensor of the sum's type."""
    tensor = tf.convert_to_tensor(gradient)
    # Scaled in the wider of the two types, so that nothing is lost or overflows.
    if dtype.size < tensor.dtype.size:
        return tf.cast(scaled(tensor, scale), dtype)
    return scaled(tf.cast(tensor, dtype), scale)
