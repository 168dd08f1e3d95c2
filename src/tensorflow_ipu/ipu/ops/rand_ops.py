"""Dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v2 as tf

from tensorflow_ipu._former_arguments import IGNORED, with_former

from ._tensors import Tensor, sizes


@with_former(seed_modifier=IGNORED)
def dropout(
    x: Tensor,
    rate: float = 0.5,
    noise_shape: Sequence[int] | None = None,
    seed: Any = None,
    name: str | None = None,
    **kwargs: Any,
) -> Tensor:
    """`x` with elements zeroed at probability `rate` and the others scaled up to match.

    `noise_shape` has the rank of `x`; along a dimension of size 1 in it all elements
    share one draw. `seed` is a pair of int32; the same pair draws the same elements.
    """
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"rate is {rate}, and it must be in the range [0, 1).")
    # `ref` chose between two ways to store the mask and never changed a value.
    kwargs.pop("ref", True)
    scale = kwargs.pop("scale", 1.0)  # of SDK 1.2: what kept elements are times
    if kwargs:
        raise TypeError(f"dropout got unexpected arguments: {', '.join(kwargs)}")
    x = x if scale == 1.0 else x * scale
    shape = _noise_shape(x, noise_shape)
    if seed is None:
        return tf.nn.dropout(x, rate=rate, noise_shape=shape, name=name)
    seed = tf.convert_to_tensor(seed)
    if seed.shape != [2]:
        raise ValueError(
            f"A seed is two numbers, of shape [2]; this one has {seed.shape}."
        )
    return tf.nn.experimental.stateless_dropout(
        x, rate=rate, seed=seed, noise_shape=shape, name=name
    )


def _noise_shape(x: Tensor, noise_shape: Sequence[int] | None) -> list[int] | None:
    if not noise_shape:
        return None
    if len(noise_shape) != x.shape.rank:
        raise ValueError(
            "noise_shape has one size per dimension: its length must equal the rank of "
            f"x. It has {len(noise_shape)} for {x.shape.rank}."
        )
    for size, noise in zip(sizes(x), noise_shape, strict=True):
        if noise not in (1, size):
            raise ValueError(f"Dimension mismatch, {size} != {noise}.")
    return list(noise_shape)
