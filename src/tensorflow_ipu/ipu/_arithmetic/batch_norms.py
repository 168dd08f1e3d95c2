"""Batch norms as the device has them: over groups of replicas, in half precision.

In: the functions that make a fused batch norm and its gradient. Out: functions of the
same arguments. Statistics are those of a group of replicas if the configuration says
so (`norms.experimental.distributed_batch_norm_replica_group_size`), and scales and
offsets may be in half precision.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.distribute import device_util

from popple.engine.tensorflow import num_replicas

from .. import _device
from ..ops import cross_replica_ops
from .norms import per_channel

__all__ = ["complete"]

# What is said of each channel, in the order of the operations' arguments and results.
_GIVEN = ("scale", "offset", "mean", "variance", "reserve_space_1", "reserve_space_2")

Settings = dict[str, Any]

# What None stands for.
_DEFAULTS = {
    "epsilon": 0.0001,
    "exponential_avg_factor": 1.0,
    "data_format": "NHWC",
    "is_training": True,
}


def complete(module: ModuleType) -> None:
    """Replace functions of `gen_nn_ops`."""
    for name, grouped in (
        ("fused_batch_norm_v3", _normalized),
        ("fused_batch_norm_grad_v2", _gradients),
        ("fused_batch_norm_grad_v3", _gradients),
    ):
        setattr(module, name, _completed(getattr(module, name), grouped))


def _completed(
    stock: Callable[..., Any], grouped: Callable[[Settings, int], tuple[Any, ...]]
) -> Callable[..., Any]:
    signature = inspect.signature(stock)

    @functools.wraps(stock)
    def make(*args: Any, **kwargs: Any) -> tuple[tf.Tensor, ...]:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        settings = _in_float(given.arguments)
        size = _group_size() if settings["is_training"] else 1
        results = grouped(settings, size) if size > 1 else stock(**settings)
        if tf.convert_to_tensor(given.arguments["scale"]).dtype != tf.float16:
            return results
        return (results[0], *(tf.cast(x, tf.float16) for x in results[1:]))

    return make


def _in_float(arguments: Settings) -> Settings:
    """Arguments with everything about channels in single precision."""
    settings = {
        name: _DEFAULTS.get(name) if value is None else value
        for name, value in arguments.items()
    }
    for name in _GIVEN:
        if name in settings:
            settings[name] = x = tf.convert_to_tensor(settings[name])
            settings[name] = tf.cast(x, tf.float32) if x.dtype == tf.float16 else x
    return settings


def _group_size() -> int:
    """Replicas that share their statistics in the program being built."""
    # A single replica has nobody to share its statistics with.
    if num_replicas() == 1:
        return 1
    device = device_util.current()
    options = _device.get_options(_device.ordinal_of(device) if "IPU" in device else 0)
    return max(1, options.experimental_distributed_batch_norm_replica_group_size)


class _Channels:
    """The channels of a tensor: their axis, and means over everything else."""

    def __init__(self, x: tf.Tensor, data_format: Any, group_size: int) -> None:
        self.rank = x.shape.rank
        is_first = tf.compat.as_str(data_format).startswith("NC")
        self.axis = 1 if is_first else self.rank - 1
        self.axes = [axis for axis in range(self.rank) if axis != self.axis]
        self.group_size = group_size

    def mean(self, x: tf.Tensor) -> tf.Tensor:
        """The mean of each channel in all replicas of the group."""
        own = tf.reduce_mean(x, self.axes)
        return cross_replica_ops.cross_replica_mean(own, self.group_size)

    def spread(self, values: Any) -> tf.Tensor:
        """One number per channel, to be broadcast."""
        return per_channel(values, self.rank, self.axis)

    def num_elements(self, x: tf.Tensor) -> tf.Tensor:
        """Elements of one channel in all replicas of the group."""
        sizes = tf.gather(tf.shape(x), self.axes)
        return tf.cast(tf.reduce_prod(sizes) * self.group_size, tf.float32)


def _normalized(settings: Settings, group_size: int) -> tuple[Any, ...]:
    """The results of a fused batch norm in training."""
    given = tf.convert_to_tensor(settings["x"])
    channels = _Channels(given, settings["data_format"], group_size)
    x = tf.cast(given, tf.float32)
    mean = channels.mean(x)
    centred = x - channels.spread(mean)
    variance = channels.mean(tf.square(centred))
    factor = settings["scale"] * tf.math.rsqrt(variance + settings["epsilon"])
    y = centred * channels.spread(factor) + channels.spread(settings["offset"])
    # The variance that is kept for inference is that of the whole population.
    count = channels.num_elements(x)
    kept = variance * count / tf.maximum(count - 1, 1)
    running = _running(settings, mean, kept)
    return tf.cast(y, given.dtype), *running, mean, variance, tf.zeros([0])


def _running(settings: Settings, mean: Any, variance: Any) -> tuple[Any, Any]:
    share = settings["exponential_avg_factor"]
    if share == 1:
        return mean, variance
    return (
        (1 - share) * settings["mean"] + share * mean,
        (1 - share) * settings["variance"] + share * variance,
    )


def _gradients(settings: Settings, group_size: int) -> tuple[Any, ...]:
    """The results of the gradient of a fused batch norm in training."""
    given = tf.convert_to_tensor(settings["x"])
    channels = _Channels(given, settings["data_format"], group_size)
    upstream = tf.cast(settings["y_backprop"], tf.float32)
    centred = tf.cast(given, tf.float32) - channels.spread(settings["reserve_space_1"])
    inverse = tf.math.rsqrt(settings["reserve_space_2"] + settings["epsilon"])
    slope = channels.mean(upstream * centred) * tf.square(inverse)
    rest = upstream - channels.spread(channels.mean(upstream))
    rest -= centred * channels.spread(slope)
    dx = rest * channels.spread(settings["scale"] * inverse)
    scale = tf.reduce_sum(upstream * centred * channels.spread(inverse), channels.axes)
    offset = tf.reduce_sum(upstream, channels.axes)
    return tf.cast(dx, given.dtype), scale, offset, tf.zeros([0]), tf.zeros([0])
