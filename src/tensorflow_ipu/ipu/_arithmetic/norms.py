"""Normalisation within groups of channels, without variables."""

from __future__ import annotations

import tensorflow.compat.v2 as tf

from ..ops._tensors import Tensor, sizes


def normalize_groups(
    inputs: Tensor,
    axis: int,
    groups: int,
    epsilon: float,
    strided: bool,
) -> Tensor:
    """`inputs` with every example's groups of channels at mean 0 and variance 1.

    The channels lie along `axis`. Group g holds the channels g, g + groups, .. if
    `strided`, else the g-th run of neighbouring channels.
    """
    shape = [size if size is not None else -1 for size in sizes(inputs)]
    members = shape[axis] // groups
    split = [members, groups] if strided else [groups, members]
    group_axis = axis + 1 if strided else axis
    x = tf.reshape(inputs, [*shape[:axis], *split, *shape[axis + 1 :]])
    axes = [i for i in range(1, x.shape.rank) if i != group_axis]
    # Statistics of half precision numbers would overflow in half precision.
    wide = tf.cast(x, tf.float32)
    mean, variance = tf.nn.moments(wide, axes=axes, keepdims=True)
    normal = (wide - mean) * tf.math.rsqrt(variance + epsilon)
    return tf.cast(tf.reshape(normal, shape), inputs.dtype)


def per_channel(values: Tensor, rank: int, axis: int) -> Tensor:
    """A vector of one number per channel, shaped to broadcast along `axis`."""
    return tf.reshape(values, [-1 if i == axis else 1 for i in range(rank)])
