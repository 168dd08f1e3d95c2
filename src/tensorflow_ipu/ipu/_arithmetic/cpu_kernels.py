"""Convolutions and pools that the CPU lacks, said with those that it has.

In: the functions that make an operation. Out: functions of the same arguments. The CPU
has channels-last kernels only, which TensorFlow's optimiser gets around in some cases
but not in half precision, and no half precision in three dimensions of pools.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import tensorflow.compat.v2 as tf

__all__ = ["complete"]

_ALWAYS = frozenset({"max_pool"})  # its gradient is left as it is by the optimiser
_IN_FLOAT = frozenset({"avg_pool3d", "max_pool3d"})
_COMPLETED = frozenset({"avg_pool", "conv2d", "conv3d", "depthwise_conv2d_native"})
_BY_DIMENSION = ("dilations", "explicit_paddings", "ksize", "strides")


def complete(module: ModuleType) -> None:
    """Replace functions of `gen_nn_ops`."""
    for name in _COMPLETED | _ALWAYS | _IN_FLOAT:
        setattr(module, name, _completed(getattr(module, name)))


def _completed(stock: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(stock)
    first = next(iter(signature.parameters))

    @functools.wraps(stock)
    def make(*args: Any, **kwargs: Any) -> tf.Tensor:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        settings = dict(given.arguments)
        settings[first] = x = tf.convert_to_tensor(settings[first])
        if x.dtype == tf.float16 and stock.__name__ in _IN_FLOAT:
            return tf.cast(make(**{**settings, first: tf.cast(x, tf.float32)}), x.dtype)
        if _lacks_layout(stock.__name__, x, settings["data_format"]):
            return _with_channels_last(stock, first, settings)
        return stock(**settings)

    return make


def _lacks_layout(name: str, x: tf.Tensor, data_format: Any) -> bool:
    if not str(data_format).startswith("NC"):
        return False
    return x.dtype == tf.float16 or name in _ALWAYS or tf.executing_eagerly()


def _with_channels_last(
    stock: Callable[..., Any], first: str, settings: dict[str, Any]
) -> tf.Tensor:
    """Make an operation between two transpositions."""
    x, name = settings[first], settings["name"]
    rank = len(settings["data_format"])
    last = [0, *range(2, rank), 1]
    moved = {
        key: _moved(settings[key], last) for key in _BY_DIMENSION if key in settings
    }
    moved["data_format"] = {4: "NHWC", 5: "NDHWC"}[rank]
    moved |= {first: tf.transpose(x, last), "name": None}
    result = stock(**{**settings, **moved})
    return tf.transpose(result, [0, rank - 1, *range(1, rank - 1)], name=name)


def _moved(values: Sequence[int], order: list[int]) -> list[int]:
    """What is said of each dimension, once or as a pair, with the channels last."""
    width = len(values) // len(order)
    return [values[width * axis + i] for axis in order for i in range(width)]
