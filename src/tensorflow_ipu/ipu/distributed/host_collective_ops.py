"""Collectives between the hosts of a program's instances."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tensorflow_ipu._types import TensorLike

from ._instances import check_alone


def allgather(value: TensorLike, tensor_name: str | None = None) -> tf.Tensor:
    """The values of all instances along a new first dimension."""
    del tensor_name
    check_alone("allgather")
    return tf.expand_dims(value, 0)


def allreduce(
    value: TensorLike, reduce_op: Any, tensor_name: str | None = None
) -> tf.Tensor:
    """The sum or the mean of the values of all instances."""
    del reduce_op, tensor_name  # of one value, both are the value
    check_alone("allreduce")
    return tf.identity(value)


def broadcast(
    value: TensorLike, root_rank: int = 0, tensor_name: str | None = None
) -> tf.Tensor:
    """The value of instance `root_rank` in all instances."""
    del root_rank, tensor_name
    check_alone("broadcast")
    return tf.identity(value)
