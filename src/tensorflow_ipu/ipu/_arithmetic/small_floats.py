"""Floating point numbers of few bits, computed with float32.

A `Layout` says how many bits are exponent and mantissa; its numbers may be tensors, so
that one graph can take its layout as data. `quantize` rounds float32 to the nearest
number of a layout, `encode` and `decode` translate between such numbers and their bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v2 as tf

from ..ops._tensors import Tensor


@dataclass(frozen=True)
class Layout:
    """The bits of a number: sign, `exponent` bits, `mantissa` bits.

    The largest exponent code stands for infinities and NaN if `infinities`; without
    `denormals` the smallest magnitude above zero is the smallest normal number.
    """

    mantissa: Any
    exponent: Any
    bias: Any
    denormals: Any = True
    infinities: Any = True

    @property
    def smallest_exponent(self) -> Tensor:
        """The exponent of the smallest normal number."""
        return 1 - tf.cast(self.bias, tf.int32)

    @property
    def largest(self) -> Tensor:
        """The largest finite number, as float32."""
        codes = tf.bitwise.left_shift(1, tf.cast(self.exponent, tf.int32)) - 1
        top = codes - tf.cast(self.infinities, tf.int32) - tf.cast(self.bias, tf.int32)
        return power(top) * (2.0 - power(-tf.cast(self.mantissa, tf.int32)))


def power(exponent: Tensor) -> Tensor:
    """Two to the power of an integer, as float32."""
    return tf.pow(2.0, tf.cast(exponent, tf.float32))


def exponent_of(value: Tensor) -> Tensor:
    """The exponent of float32 numbers; very small for zero."""
    bits = tf.bitcast(value, tf.int32)
    return tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, 23), 255) - 127


def _stochastic(value: Tensor) -> Tensor:
    return tf.floor(value + tf.random.uniform(tf.shape(value)))


# How the mantissa of a magnitude is rounded to an integer. Rounding towards one side
# of the number line is done by `quantize`, which knows the sign.
_ROUNDINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "RN": tf.round,
    "RZ": tf.floor,
    "RA": lambda value: tf.floor(value + 0.5),
    "SR": _stochastic,
    "SX": _stochastic,
}


def _round(scaled: Tensor, mode: str) -> Tensor:
    if mode in ("RU", "RD"):
        return (tf.math.ceil if mode == "RU" else tf.floor)(scaled)
    if mode not in _ROUNDINGS:
        known = ", ".join([*_ROUNDINGS, "RU", "RD"])
        raise ValueError(f"{mode!r} is no rounding mode; there are {known}")
    return tf.sign(scaled) * _ROUNDINGS[mode](tf.abs(scaled))


def quantize(
    value: Tensor, layout: Layout, mode: str = "RN", nan_on_overflow: bool = False
) -> Tensor:
    """`value` rounded to numbers of `layout`; what is too large is cut, or NaN."""
    value = tf.cast(value, tf.float32)
    smallest = layout.smallest_exponent
    exponent = tf.maximum(exponent_of(value), smallest)
    step = power(exponent - tf.cast(layout.mantissa, tf.int32))
    rounded = _round(value / step, mode) * step
    normal = tf.abs(rounded) >= power(smallest)
    rounded = tf.where(tf.logical_or(normal, layout.denormals), rounded, 0.0)
    limit = layout.largest
    cut = tf.clip_by_value(rounded, -limit, limit)
    over = tf.abs(rounded) > limit
    nan = tf.constant(float("nan"))
    result = tf.where(over, nan, cut) if nan_on_overflow else cut
    kept = tf.where(layout.infinities, nan, 0.0)
    return tf.where(tf.math.is_nan(value), kept, result)


def encode(value: Tensor, layout: Layout) -> Tensor:
    """The bits of numbers of `layout`, as int32, without the sign."""
    mantissa = tf.cast(layout.mantissa, tf.int32)
    magnitude = tf.abs(value)
    exponent = tf.maximum(exponent_of(magnitude), layout.smallest_exponent)
    units = tf.cast(magnitude / power(exponent - mantissa), tf.int32)
    # A normal number has `units` of at least 2^mantissa, whose highest bit adds one
    # to the exponent code; a denormal has none and its code is 0.
    code = exponent - layout.smallest_exponent
    return tf.bitwise.left_shift(code, mantissa) + units


def decode(bits: Tensor, layout: Layout) -> Tensor:
    """The magnitudes, as float32, that `encode` turned into these bits."""
    mantissa = tf.cast(layout.mantissa, tf.int32)
    code = tf.bitwise.right_shift(bits, mantissa)
    fraction = bits - tf.bitwise.left_shift(code, mantissa)
    hidden = tf.where(code > 0, tf.bitwise.left_shift(1, mantissa), 0)
    exponent = tf.maximum(code - 1, 0) + layout.smallest_exponent - mantissa
    return tf.cast(hidden + fraction, tf.float32) * power(exponent)
