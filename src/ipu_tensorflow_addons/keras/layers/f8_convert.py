"""Layers between numbers of eight bits and wider ones."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu.ops import f8_ops

from tensorflow_ipu._types import DTypeLike

from .ipu_layer import IPULayer


class ConvertToF8(IPULayer):
    """Numbers as 8-bit ones: a list of data and metadata, both uint8."""

    def call(self, data: tf.Tensor, metadata: tf.Tensor, **kwargs: Any) -> list[Any]:
        """`metadata` comes from `tensorflow.python.ipu.ops.f8_ops.create_metadata`."""
        del kwargs
        return list(f8_ops.convert_to_f8(data, metadata))


class ConvertFromF8(IPULayer):
    """8-bit numbers, a list of data and metadata, as numbers of type `dtype`."""

    def __init__(self, dtype: DTypeLike = tf.float16, **kwargs: Any) -> None:
        super().__init__(dtype=dtype, **kwargs)

    def call(self, inputs: f8_ops.QuarterTensor, **kwargs: Any) -> tf.Tensor:
        """The numbers."""
        del kwargs
        return f8_ops.convert_from_f8(f8_ops.QuarterTensor(*inputs), dtype=self.dtype)
