"""Raw operators that draw random numbers: dropout with its seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf

from . import _absent

Tensor = Any


class Dropout(NamedTuple):
    """The tensor with holes, the seed they follow from, and what refers to them."""

    output: Tensor
    seed: Tensor
    reference: Tensor


def ipu_dropout(
    input: Tensor,
    rate: float,
    scale: float,
    noise_shape: Sequence[int] | None = None,
    name: str | None = None,
) -> Dropout:
    """Zero elements with probability `rate` and scale the others, by a new seed."""
    limits = tf.int32.limits
    seed = tf.random.uniform([2], *limits, dtype=tf.int32)
    return ipu_dropout_with_seed(input, seed, rate, scale, noise_shape, name)


def ipu_dropout_with_seed(
    input: Tensor,
    seed: Tensor,
    rate: float,
    scale: float,
    noise_shape: Sequence[int] | None = None,
    name: str | None = None,
) -> Dropout:
    """As `ipu_dropout`, by a given seed of two integers."""
    input = tf.convert_to_tensor(input)
    shape = list(noise_shape) if noise_shape else tf.shape(input)
    seed = tf.identity(seed)
    drawn = tf.random.stateless_uniform(shape, tf.bitcast(seed, tf.int32))
    kept = tf.cast(drawn >= rate, input.dtype)
    output = tf.multiply(input * tf.cast(scale, input.dtype), kept, name=name)
    return Dropout(output, seed, seed)


__getattr__ = _absent.explain(__name__, {"": "ops.rand_ops.dropout"})
