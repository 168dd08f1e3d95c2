"""Normalisation of images on their way into a model."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tensorflow_ipu._types import TensorLike

from ._tensors import Tensor, sizes


def normalise_image(
    image: Tensor,
    channel_offsets: Any,
    channel_scales: Any,
    scale: float = 1,
    name: str | None = None,
) -> Tensor:
    """`(image * scale - channel_offsets) * channel_scales`, with a fourth channel of 0.

    `image` has its 3 channels in the last dimension and is float16, float32 or uint8;
    the result has the same type, float16 for uint8.
    """
    if image.dtype not in (tf.float16, tf.float32, tf.uint8):
        raise TypeError(
            "The input `image` to `normalise_image` must be either float16, float32 "
            f"or uint8; it is {image.dtype.name}"
        )
    dtype = tf.float16 if image.dtype == tf.uint8 else image.dtype
    offsets = _per_channel("offsets", channel_offsets, image, dtype)
    scales = _per_channel("scales", channel_scales, image, dtype)
    with tf.name_scope(name or "NormaliseImage"):
        scaled = tf.cast(image, dtype) * tf.cast(scale, dtype)
        normal = (scaled - offsets) * scales
        return tf.pad(normal, [[0, 0]] * (image.shape.rank - 1) + [[0, 1]])


def _per_channel(
    what: str, values: TensorLike, image: Tensor, dtype: tf.DType
) -> Tensor:
    if sizes(image)[-1] != 3:
        raise tf.errors.InvalidArgumentError(
            None, None, f"The image has {sizes(image)[-1]} channels, expected 3."
        )
    tensor = tf.cast(values, dtype)
    if tensor.shape != [3]:
        raise tf.errors.InvalidArgumentError(
            None,
            None,
            f"The channel {what} must be the same size as the number of image "
            f"channels 3, but was {tensor.shape}.",
        )
    return tensor
