"""Raw operators on tensors: exchange between replicas, slices of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu.ops import (
    all_to_all_op,
    cross_replica_ops,
    reduce_scatter_op,
)

from . import _absent

Tensor = Any


def ipu_cross_replica_sum(
    input: Tensor, replica_group_size: int = 0, name: str | None = None
) -> Tensor:
    """The sum over replicas; 0 stands for one group of all of them."""
    return cross_replica_ops.cross_replica_sum(
        input, name=name, replica_group_size=replica_group_size or None
    )


def ipu_cross_replica_mean(
    input: Tensor, replica_group_size: int = 0, name: str | None = None
) -> Tensor:
    """The mean over replicas; 0 stands for one group of all of them."""
    return cross_replica_ops.cross_replica_mean(
        input, name=name, replica_group_size=replica_group_size or None
    )


def ipu_all_gather(
    inputs: Sequence[Tensor], replication_factor: int, name: str | None = None
) -> list[Tensor]:
    """Each tensor of all replicas, stacked."""
    return [all_to_all_op.all_gather(x, replication_factor, name) for x in inputs]


def ipu_all_to_all(
    input: Tensor,
    split_dimension: int,
    concat_dimension: int,
    number_of_replicas: int,
    name: str | None = None,
) -> Tensor:
    """A part of the tensor to each replica, and one from each."""
    return all_to_all_op.all_to_all(
        input, split_dimension, concat_dimension, number_of_replicas, name
    )


def ipu_reduce_scatter(
    inputs: Sequence[Tensor], op: str, replication_factor: int, name: str | None = None
) -> list[Tensor]:
    """Vectors reduced over replicas, a part of each for each replica."""
    return [
        reduce_scatter_op.reduce_scatter(x, replication_factor, op, name)
        for x in inputs
    ]


def ipu_multi_slice(
    input: Tensor,
    indices: Tensor,
    indices_are_sorted: bool = False,
    name: str | None = None,
) -> Tensor:
    """Rows of a table."""
    return tf.gather(input, indices, name=name)


def ipu_multi_update(
    input: Tensor,
    indices: Tensor,
    updates: Tensor,
    indices_are_sorted: bool = False,
    name: str | None = None,
) -> Tensor:
    """A table with some rows replaced."""
    rows, values = _rows(input, indices, updates)
    return tf.tensor_scatter_nd_update(input, rows, values, name=name)


def ipu_multi_update_add(
    input: Tensor,
    indices: Tensor,
    updates: Tensor,
    scale: Any,
    indices_are_sorted: bool = False,
    name: str | None = None,
) -> Tensor:
    """A table with multiples of other rows added to some of its rows."""
    rows, values = _rows(input, indices, updates)
    scale = tf.cast(scale, values.dtype)
    return tf.tensor_scatter_nd_add(input, rows, values * scale, name=name)


def _rows(input: Tensor, indices: Tensor, updates: Tensor) -> tuple[Tensor, Tensor]:
    row_shape = tf.convert_to_tensor(input).shape.as_list()[1:]
    return tf.reshape(indices, [-1, 1]), tf.reshape(updates, [-1, *row_shape])


__getattr__ = _absent.explain(
    __name__,
    {
        "ipu_histogram": "ops.statistics_ops.histogram",
        "ipu_histogram_update": "ops.statistics_ops.histogram_update",
        "ipu_sequence_slice": "ops.slicing_ops.sequence_slice",
        "ipu_sequence_slice_unpack": "ops.slicing_ops.sequence_slice_unpack",
        "ipu_assume_equal_across_replicas": (
            "ops.cross_replica_ops.assume_equal_across_replicas"
        ),
        "ipu_all_gather_within_replica": "ops.within_replica_ops.all_gather",
        "ipu_all_reduce_within_replica": "ops.within_replica_ops.all_reduce",
        "ipu_reduce_scatter_within_replica": "ops.within_replica_ops.reduce_scatter",
    },
)
