"""Convolutions and pools in every layout and precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu

__all__ = ["ipu"]  # this file is one of a program for the IPU

Pool = Callable[..., Any]


def last_to_first(x: Any) -> Any:
    """The same values with the channels in front."""
    return tf.transpose(x, [0, x.shape.rank - 1, *range(1, x.shape.rank - 1)])


def numbers(shape: list[int], modulus: int, dtype: Any = tf.float16) -> Any:
    """Small integers, some of them equal."""
    return tf.constant(np.arange(np.prod(shape)).reshape(shape) % modulus, dtype)


def apply(pool: Pool, x: Any, data_format: str) -> tuple[Any, Any]:
    """What a pool over two elements of each dimension gives, and its gradient."""

    @tf.function
    def run(x: Any) -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = pool(x, 2, 2, "SAME", data_format=data_format)
        return y, tape.gradient(y, x)

    return run(x)


@pytest.mark.parametrize("pool", [tf.nn.avg_pool2d, tf.nn.max_pool2d])
@pytest.mark.parametrize("dtype", [tf.float16, tf.float32])
def test_pools_with_channels_first(pool: Pool, dtype: Any) -> None:
    x = numbers([2, 4, 6, 3], 7, dtype)
    wanted, wanted_gradient = apply(pool, x, "NHWC")
    y, gradient = apply(pool, last_to_first(x), "NCHW")
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, last_to_first(wanted))
    np.testing.assert_array_equal(gradient, last_to_first(wanted_gradient))


@pytest.mark.parametrize("pool", [tf.nn.avg_pool3d, tf.nn.max_pool3d])
def test_volumes_in_half_precision(pool: Pool) -> None:
    x = numbers([1, 4, 4, 4, 2], 5)
    wanted, _ = apply(pool, tf.cast(x, tf.float32), "NDHWC")
    for given, data_format in ((x, "NDHWC"), (last_to_first(x), "NCDHW")):
        y, gradient = apply(pool, given, data_format)
        assert (y.dtype, gradient.dtype) == (tf.float16, tf.float16)
        same = wanted if given is x else last_to_first(wanted)
        np.testing.assert_allclose(y, same, rtol=1e-3)


def test_convolutions_in_half_precision_with_channels_first() -> None:
    x, kernel = numbers([1, 5, 4, 2], 3), numbers([2, 3, 2, 4], 4)
    pads = [[0, 0], [1, 0], [0, 2], [0, 0]]  # by dimension, channels last
    first = [pads[0], pads[3], *pads[1:3]]
    wanted = tf.nn.conv2d(x, kernel, [1, 2, 1, 1], pads)
    y = tf.nn.conv2d(
        last_to_first(x), kernel, [1, 1, 2, 1], first, data_format="NCHW", name="conv"
    )
    np.testing.assert_array_equal(y, last_to_first(wanted))


def test_the_layout_may_be_left_open() -> None:
    x, kernel = numbers([1, 3, 3, 2], 3), numbers([1, 1, 2, 1], 4)
    wanted = tf.nn.conv2d(x, kernel, 1, "SAME")
    np.testing.assert_array_equal(tf.nn.convolution(x, kernel), wanted)


def test_operations_keep_their_names() -> None:
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float16, [1, 2, 4, 4])
        y = tf.nn.max_pool2d(x, 2, 2, "SAME", data_format="NCHW", name="pool")
        assert (y.name, y.shape) == ("pool:0", (1, 2, 2, 2))


def test_what_the_cpu_has_is_left_alone() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [1, 2, 4, 4])
        tf.nn.avg_pool2d(x, 2, 2, "SAME", data_format="NCHW")
        assert [op.type for op in graph.get_operations()] == ["Placeholder", "AvgPool"]
