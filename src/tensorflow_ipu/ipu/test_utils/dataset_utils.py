"""Data sets of tensors filled with 0, 1, 2, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v2 as tf

from tensorflow_ipu._types import DTypeLike

_IMAGE = (1, 32, 32, 4)
_LABEL = (1, 8)


def create_multi_increasing_dataset(
    value: int,
    shapes: Sequence[Sequence[int]] | None = None,
    dtypes: Sequence[Any] | None = None,
    repeat: bool = True,
) -> tf.data.Dataset:
    """Elements 0 to `value` - 1; the tensors of element n are full of n."""
    shapes = shapes or (_IMAGE, _LABEL)
    dtypes = dtypes or (np.float32, np.float32)

    def fill(number: Any) -> tuple[Any, ...]:
        pairs = zip(shapes, dtypes, strict=False)
        return tuple(tf.cast(tf.fill(shape, number), dtype) for shape, dtype in pairs)

    dataset = tf.data.Dataset.range(value).map(fill)
    return dataset.repeat() if repeat else dataset


def create_dual_increasing_dataset(
    value: int,
    data_shape: Sequence[int] | None = None,
    label_shape: Sequence[int] | None = None,
    dtype: DTypeLike = np.float32,
    repeat: bool = True,
) -> tf.data.Dataset:
    """As `create_multi_increasing_dataset`, with data and label."""
    shapes = (data_shape or _IMAGE, label_shape or _LABEL)
    return create_multi_increasing_dataset(value, shapes, (dtype, dtype), repeat)


def create_single_increasing_dataset(
    value: int,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = np.float32,
    repeat: bool = True,
) -> tf.data.Dataset:
    """As `create_multi_increasing_dataset`, with one tensor."""
    shapes = (_IMAGE if shape is None else shape,)
    return create_multi_increasing_dataset(value, shapes, (dtype,), repeat)
