"""Histograms.

`n` levels make `n + 1` bins: below the first level, between each two, and from the last
level on.
"""

from __future__ import annotations

import tensorflow.compat.v2 as tf

from ._tensors import Tensor, sizes, tensors

_FLOATS = (tf.float16, tf.float32)


def fixed_width_bins(inputs: Tensor, n_bins: int) -> Tensor:
    """`n_bins` levels spread evenly between the smallest and the largest input."""
    return tf.linspace(tf.reduce_min(inputs), tf.reduce_max(inputs), n_bins)


def histogram_normalize(hist: Tensor) -> Tensor:
    """The histogram divided by the number of values in it."""
    return hist / tf.reduce_sum(hist, axis=0)


def histogram(
    inputs: Tensor, levels: Tensor, absolute_of_input: bool = False
) -> Tensor:
    """How many of the `inputs` fall between each two of the sorted `levels`."""
    inputs, levels = tensors(inputs, levels)
    _check_dtypes("histogram computation", inputs, levels)
    _check_ranks("histogram", inputs, levels)
    return _count(inputs, levels, absolute_of_input)


def histogram_update(
    hist: Tensor, inputs: Tensor, levels: Tensor, absolute_of_input: bool = False
) -> Tensor:
    """`hist` with the counts of more `inputs` added."""
    hist, inputs, levels = tensors(hist, inputs, levels)
    if hist.dtype != tf.float32:
        raise ValueError(f"hist must be of float32 type; it is {hist.dtype.name}")
    _check_dtypes("histogram update", hist, inputs, levels)
    _check_ranks("histogram_update", hist, inputs, levels)
    if sizes(hist)[0] != sizes(levels)[0] + 1:
        raise ValueError(
            f"hist and levels shapes are incompatible: {sizes(levels)[0]} levels make "
            f"{sizes(levels)[0] + 1} bins, and hist has {sizes(hist)[0]}"
        )
    return hist + _count(inputs, levels, absolute_of_input)


def _count(inputs: Tensor, levels: Tensor, absolute: bool) -> Tensor:
    values = tf.cast(tf.abs(inputs) if absolute else inputs, tf.float32)
    edges = tf.cast(levels, tf.float32)
    bins = tf.searchsorted(edges, values, side="right")
    num_bins = sizes(edges)[0] + 1
    counts = tf.math.bincount(
        bins, minlength=num_bins, maxlength=num_bins, dtype=tf.float32
    )
    return tf.ensure_shape(counts, [num_bins])


def _check_dtypes(what: str, *values: Tensor) -> None:
    if any(value.dtype not in _FLOATS for value in values):
        found = ", ".join(value.dtype.name for value in values)
        raise ValueError(
            f"Only float16 and float32 types are supported for {what}; got {found}"
        )


def _check_ranks(name: str, *values: Tensor) -> None:
    if any(value.shape.rank != 1 for value in values):
        shapes = ", ".join(str(value.shape) for value in values)
        raise ValueError(f"{name} expects rank-1 tensor inputs; got shapes {shapes}")
