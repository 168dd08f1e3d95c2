"""How fast a data set is, read as a program would read it."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.data.util import structure

from tensorflow_ipu._former_arguments import with_former
from tensorflow_ipu._types import Infeed

from . import _errors
from .ipu_infeed_queue import IPUInfeedQueue

_BYTES_PER_GB = 1e9
_CLOCK_SECS = 1e-6  # what the clock tells apart: nothing takes less


@with_former(apply_options="apply_debug_options")
def dataset_benchmark(
    dataset: tf.data.Dataset,
    number_of_epochs: int,
    elements_per_epochs: int,
    print_stats: bool = True,
    apply_debug_options: bool = True,
    do_memcpy: bool = True,
) -> tf.Tensor:
    """Read a data set and measure it; a tensor of one JSON string.

    The string has one entry in `epochs` for each epoch of `elements_per_epochs`
    elements: `elements_processed`, `total_bytes_processed`, `time_elapsed` in seconds,
    `elements_per_second` and `bandwidth` in GB/s. The options about debugging and
    copying have no effect.
    """
    for name, value in (
        ("number_of_epochs", number_of_epochs),
        ("elements_per_epochs", elements_per_epochs),
    ):
        if value < 1:
            raise ValueError(f"Expected `{name}` to be at least 1; it is {value}.")
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(
            f"`dataset` must be a tf.data.Dataset, not {type(dataset).__name__}."
        )
    types = structure.get_flat_tensor_types(dataset.element_spec)
    shapes = structure.get_flat_tensor_shapes(dataset.element_spec)
    if any(0 in (shape.as_list() if shape.rank else []) for shape in shapes):
        return _errors.failing(
            tf.errors.InvalidArgumentError,
            "Detected a tensor in the dataset with a dimension of size 0, which cannot "
            f"be fed: the shapes are {[str(shape) for shape in shapes]}.",
        )
    sizes = zip(types, shapes, strict=True)
    element_bytes = sum(t.size * math.prod(s.as_list()) for t, s in sizes)
    times = _epoch_times(dataset, number_of_epochs, elements_per_epochs)

    def describe(seconds: Any) -> Any:
        return _describe(seconds, elements_per_epochs, element_bytes)

    text = tf.reshape(tf.numpy_function(describe, [times], tf.string), [1])
    if not print_stats:
        return text
    shown = tf.print(text[0], output_stream=sys.stdout)
    with tf.control_dependencies([] if shown is None else [shown]):
        return tf.identity(text)


def infeed_benchmark(
    infeed_queue: Infeed,
    number_of_epochs: int,
    elements_per_epochs: int,
    print_stats: bool = True,
    do_memcpy: bool = True,
) -> tf.Tensor:
    """The same for the data set of an infeed queue."""
    if not isinstance(infeed_queue, IPUInfeedQueue):
        raise TypeError(
            "`infeed_queue` must be an IPUInfeedQueue, not "
            f"{type(infeed_queue).__name__}."
        )
    return dataset_benchmark(
        infeed_queue._dataset, number_of_epochs, elements_per_epochs, print_stats
    )


def _epoch_times(
    dataset: tf.data.Dataset, num_epochs: int, num_elements: int
) -> tf.Tensor:
    """Seconds that each epoch took, from one pass over the data."""

    @tf.function
    def measure() -> tf.Tensor:
        iterator = iter(dataset)
        times = tf.TensorArray(tf.float64, num_epochs)
        for epoch in tf.range(num_epochs):
            start = tf.timestamp()
            num_read = 0
            # TensorFlow orders clocks and iterators among themselves only: what is
            # between two readings of the clock has to depend on the first.
            with tf.control_dependencies([start]):
                for _ in tf.range(num_elements):
                    element = tf.nest.flatten(next(iterator))
                    with tf.control_dependencies(element):
                        num_read += 1
            with tf.control_dependencies([tf.convert_to_tensor(num_read)]):
                end = tf.timestamp()
            times = times.write(epoch, end - start)
        return times.stack()

    return measure()


def _describe(seconds: Any, num_elements: int, element_bytes: int) -> bytes:
    total = num_elements * element_bytes
    epochs = [
        {
            "elements_processed": num_elements,
            "total_bytes_processed": total,
            "time_elapsed": elapsed,
            "elements_per_second": num_elements / elapsed,
            "bandwidth": total / (_BYTES_PER_GB * elapsed),
        }
        for elapsed in (max(float(value), _CLOCK_SECS) for value in seconds)
    ]
    return json.dumps({"epochs": epochs}).encode()
