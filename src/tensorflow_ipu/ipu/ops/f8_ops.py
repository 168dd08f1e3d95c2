"""Numbers of eight bits: conversion, matrix products and convolutions.

An 8-bit tensor is a pair of uint8 tensors: the numbers, and one byte of metadata that
says which format they have and by which power of two they are scaled. The byte 128 is
NaN; there are no infinities and no negative zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import tensorflow.compat.v2 as tf

from tensorflow_ipu._types import TensorLike

from .._arithmetic.small_floats import Layout, decode, encode, power, quantize
from ._tensors import Dtype, Tensor

_NAN = 128


class Format(IntEnum):
    """The two formats: four bits of exponent and three of mantissa, or five and two."""

    F143 = 0
    F152 = 1


def create_metadata(fmt: Format, scale: int = 0) -> int:
    """The metadata byte of numbers in format `fmt` scaled by two to the `scale`."""
    return (128 if fmt == Format.F143 else 0) | (scale & 0x3F)


class QuarterTensor:
    """A tensor of 8-bit numbers: its `data` and its `metadata`, both uint8."""

    def __init__(self, data: Any, metadata: TensorLike) -> None:
        self.data = _bytes(data)
        self.metadata = _bytes(metadata)

    def numpy(self) -> list[Any]:
        """Data and metadata as arrays."""
        return [self.data.numpy(), self.metadata.numpy()]

    def assign(self, new_values: Sequence[Any], **kwargs: Any) -> None:
        """Take over data and metadata, as `numpy` gave them."""
        self.data = _bytes(new_values[0])
        self.metadata = _bytes(new_values[1])

    def __repr__(self) -> str:
        return f"QuarterTensor(data={self.data}, metadata={self.metadata})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QuarterTensor):
            return NotImplemented
        pairs = zip(self.numpy(), other.numpy(), strict=True)
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    __hash__ = object.__hash__

    @property
    def shape(self) -> tf.TensorShape:
        """The shape of the data."""
        return self.data.shape

    @property
    def dtype(self) -> Dtype:
        """uint8, the type that carries the bits."""
        return tf.uint8

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: object) -> Tensor:
        return self.data[index]

    def __iter__(self) -> Iterator[Tensor]:
        return iter([self.data, self.metadata])


def _bytes(data: Any) -> Tensor:
    if isinstance(data, np.ndarray | int):
        data = tf.convert_to_tensor(data, tf.uint8)
    if data.dtype != tf.uint8:
        raise TypeError(
            f"A QuarterTensor takes only uint8, not {data.dtype}. Use what "
            "`convert_to_f8` returned."
        )
    return data


def convert_to_f8(
    values: Tensor, metadata: TensorLike, name: str | None = None
) -> QuarterTensor:
    """`values` as 8-bit numbers of the format and scale in `metadata`."""
    metadata = tf.convert_to_tensor(metadata, tf.uint8)
    with tf.name_scope(name or "convert_to_f8"):
        layout, scale = _layout(metadata)
        scaled = tf.cast(values, tf.float32) * power(-scale)
        rounded = quantize(scaled, layout)
        bits = encode(rounded, layout)
        signed = tf.where(rounded < 0, bits + 128, bits)
        signed = tf.where(tf.math.is_nan(scaled), _NAN, signed)
        return QuarterTensor(tf.cast(signed, tf.uint8), metadata)


def convert_from_f8(
    packed_input: Any, dtype: Dtype = tf.float16, name: str | None = None
) -> Tensor:
    """8-bit numbers as a tensor of type `dtype`."""
    values, metadata = packed_input
    metadata = tf.convert_to_tensor(metadata, tf.uint8)
    with tf.name_scope(name or "convert_from_f8"):
        layout, scale = _layout(metadata)
        bits = tf.cast(values, tf.int32)
        magnitude = decode(tf.bitwise.bitwise_and(bits, 127), layout) * power(scale)
        signed = tf.where(bits > _NAN, -magnitude, magnitude)
        number = tf.where(tf.equal(bits, _NAN), tf.constant(float("nan")), signed)
        return tf.cast(number, dtype)


def _layout(metadata: Tensor) -> tuple[Layout, Tensor]:
    """Format and power of two that a metadata byte stands for."""
    byte = tf.cast(metadata, tf.int32)
    is_143 = byte >= 128
    scale = tf.bitwise.bitwise_and(byte, 0x3F)
    scale = tf.where(scale >= 32, scale - 64, scale)
    layout = Layout(
        mantissa=tf.where(is_143, 3, 2),
        exponent=tf.where(is_143, 4, 5),
        bias=tf.where(is_143, 8, 16),
        infinities=False,
    )
    return layout, scale


def canonicalise_input(
    inp: Any, expected_rank: int = 3, name: str = "MatMulCanonicalise"
) -> list[Tensor]:
    """Data and metadata of an operand, the data with a leading group dimension."""
    if isinstance(inp, QuarterTensor):
        data, metadata = inp
    else:
        data, metadata = tf.convert_to_tensor(inp), tf.constant(0, tf.uint8)
    if not data.shape.is_fully_defined():
        raise ValueError(f"Input shape must be fully defined: {data}")
    if data.shape.rank == 2:
        data = tf.expand_dims(data, 0, name=name)
    data.shape.assert_has_rank(expected_rank)
    return [data, metadata]


def canonicalise_output(output: Sequence[Tensor], lhs: Any) -> Tensor:
    """The first output, without the group dimension that `lhs` did not have."""
    data = lhs.data if isinstance(lhs, QuarterTensor) else lhs
    return tf.squeeze(output[0], 0) if len(data.shape) == 2 else output[0]


def _operand(operand: Any, expected_rank: int) -> Tensor:
    """An operand as float32, from 8-bit numbers or as it is."""
    data, metadata = canonicalise_input(operand, expected_rank)
    if isinstance(operand, QuarterTensor):
        return convert_from_f8((data, metadata), tf.float32)
    return tf.cast(data, tf.float32)


def f8_matmul(lhs: Any, rhs: Any, name: str = "f8_matmul") -> Tensor:
    """The product of two matrices, or of groups of them, as float16."""
    with tf.name_scope(name):
        product = tf.matmul(_operand(lhs, 3), _operand(rhs, 3))
        return canonicalise_output([tf.cast(product, tf.float16)], lhs)


def f8_conv_1d(
    inputs: QuarterTensor | tf.Tensor,
    filters: QuarterTensor | tf.Tensor,
    strides: int | Sequence[int],
    padding: str,
    data_format: str = "NWC",
    dilations: int | Sequence[int] = (1,),
    name: str = "f8_conv_1d",
) -> Tensor:
    """A convolution over one dimension, as float16."""
    if data_format not in ("NWC", "NCW"):
        raise ValueError(
            f"`data_format` must be 'NWC' or 'NCW'. Received: {data_format}"
        )
    x, k = _operand(inputs, 3), _operand(filters, 3)
    y = tf.nn.conv1d(x, k, strides, padding, data_format, dilations, name)
    return tf.cast(y, tf.float16)


def f8_conv_2d(
    inputs: QuarterTensor | tf.Tensor,
    filters: QuarterTensor | tf.Tensor,
    strides: int | Sequence[int],
    padding: str,
    data_format: str = "NHWC",
    dilations: int | Sequence[int] = (1, 1, 1, 1),
    name: str = "f8_conv_2d",
) -> Tensor:
    """A convolution over two dimensions, as float16."""
    x, k = _operand(inputs, 4), _operand(filters, 4)
    y = tf.nn.conv2d(x, k, strides, padding, data_format, dilations, name)
    return tf.cast(y, tf.float16)


def f8_conv_3d(
    inputs: QuarterTensor | tf.Tensor,
    filters: QuarterTensor | tf.Tensor,
    strides: int | Sequence[int],
    padding: str,
    data_format: str = "NDHWC",
    dilations: int | Sequence[int] = (1, 1, 1, 1, 1),
    name: str = "f8_conv_3d",
) -> Tensor:
    """A convolution over three dimensions, as float16."""
    x, k = _operand(inputs, 5), _operand(filters, 5)
    y = tf.nn.conv3d(x, k, strides, padding, data_format, dilations, name)
    return tf.cast(y, tf.float16)
