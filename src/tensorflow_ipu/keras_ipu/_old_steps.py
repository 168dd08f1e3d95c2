"""How the models of older releases counted: steps are weight updates, not batches.

In: what `fit`, `evaluate` or `predict` was told. Out: a data set of as many batches as
an epoch takes, and how many of them run at a time, in the counting of today. A step was
`accumulation` batches on one replica, and steps were counted over all replicas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.platform import tf_logging as logging

from tensorflow_ipu._types import Data

__all__ = ["Epoch", "Shape", "as_dataset", "epoch_of", "in_pairs"]

_DEFAULT_BATCH = 32  # as Keras has it


@dataclass(frozen=True)
class Shape:
    """How a model runs: the batches of one update, and its replicas."""

    accumulation: int
    replicas: int


@dataclass(frozen=True)
class Epoch:
    """What one epoch runs: its data, its batches over all replicas, and at a time."""

    data: tf.data.Dataset
    num_batches: int
    batches_at_a_time: int


def as_dataset(x: Data, y: Data, batch_size: int | None) -> tf.data.Dataset:
    """Data as a data set of full batches: what is left over at the end is dropped.

    Arrays are taken in their order; float64 is what numpy makes of most numbers, and
    the device has none.
    """
    if isinstance(x, tf.data.Dataset):
        if y is not None or batch_size is not None:
            raise ValueError(
                "A data set has its own targets and batches: leave out `y` and "
                "`batch_size`."
            )
        return x
    given = (x,) if y is None else (x, y)
    arrays = tf.nest.map_structure(_as_float32, given)
    data = tf.data.Dataset.from_tensor_slices(arrays)
    return data.batch(batch_size or _DEFAULT_BATCH, drop_remainder=True)


def _as_float32(values: Any) -> tf.Tensor:
    tensor = tf.convert_to_tensor(values)
    return tf.cast(tensor, tf.float32) if tensor.dtype == tf.float64 else tensor


def in_pairs(
    data: tf.data.Dataset, num_inputs: int, num_outputs: int
) -> tf.data.Dataset:
    """The data set with elements of (inputs, targets), or of (inputs,) for no targets.

    Elements may be nested or flat: what counts is how many tensors they have.
    """
    flat = tf.nest.flatten(data.element_spec)
    wanted = num_inputs + num_outputs
    if len(flat) != wanted:
        what = "inputs and targets" if num_outputs else "inputs only"
        raise ValueError(
            f"Elements of the data set must have {wanted} tensors, {what}, and they "
            f"have {len(flat)}: {data.element_spec}."
        )

    def regroup(*element: Any) -> tuple[Any, ...]:
        tensors = tf.nest.flatten(element)
        inputs = _alone_or_all(tensors[:num_inputs])
        outputs = _alone_or_all(tensors[num_inputs:])
        return (inputs, outputs) if num_outputs else (inputs,)

    return data.map(regroup)


def _alone_or_all(tensors: list[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def epoch_of(
    data: tf.data.Dataset,
    shape: Shape,
    steps: int | None,
    steps_per_run: int | None,
    is_array: bool,
) -> Epoch:
    """The epoch that these steps make of the data."""
    size = int(data.cardinality())
    if steps is None:
        steps = _all_steps(size, shape, steps_per_run or 1, is_array)
    num_batches = steps * shape.accumulation
    if is_array:
        data = data.repeat()  # arrays begin again when they are used up
    if is_array or size >= 0 or size == tf.data.UNKNOWN_CARDINALITY:
        _check_enough(num_batches, size, is_array)
        # Of known length, so that every epoch begins with the first batch.
        data = data.take(num_batches)
        data = data.apply(tf.data.experimental.assert_cardinality(num_batches))
    return Epoch(data, num_batches, _at_a_time(steps, shape, steps_per_run))


def _all_steps(size: int, shape: Shape, steps_per_run: int, is_array: bool) -> int:
    """The steps that use up data of this size."""
    if size < 0:
        raise ValueError(
            "The size of the data set is not known: say how many steps an epoch has, "
            "with `steps_per_epoch` or `steps`."
        )
    block = shape.accumulation * shape.replicas * steps_per_run
    left = size % block
    if left and not is_array:
        raise ValueError(
            f"The data set has {size} batches, which must be a multiple of {block}: "
            f"{shape.accumulation} of one weight update, {shape.replicas} replicas, "
            f"{steps_per_run} steps per run."
        )
    if left:
        logging.warn(
            f"The data have {size} batches, and a run takes {block}: the last {left} "
            "are left out."
        )
    if size < block:
        raise ValueError(
            f"The data have {size} batches, fewer than the {block} of a run."
        )
    return (size - left) // shape.accumulation


def _check_enough(num_batches: int, size: int, is_array: bool) -> None:
    if not is_array and 0 <= size < num_batches:
        raise ValueError(
            f"An epoch takes {num_batches} batches (steps times the batches of a "
            f"weight update), and the data set has {size}: repeat() it."
        )


def _at_a_time(steps: int, shape: Shape, steps_per_run: int | None) -> int:
    """The batches that run on a replica at a time: by default a whole epoch."""
    if steps % shape.replicas:
        raise ValueError(
            f"{steps} steps do not come out even on {shape.replicas} replicas: they "
            "are counted over all of them."
        )
    on_each = steps // shape.replicas
    if steps_per_run is not None and on_each % steps_per_run:
        raise ValueError(
            f"`steps_per_run` ({steps_per_run}) must divide the {on_each} steps that "
            "an epoch has on each replica."
        )
    return (steps_per_run or on_each) * shape.accumulation
