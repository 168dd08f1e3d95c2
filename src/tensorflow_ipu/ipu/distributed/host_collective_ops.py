"""Collectives between the hosts of a program's instances.

Inside a function a collective is known by its name, by default that of the tensor it
sends, so instances may build theirs in any order. Eagerly they are run in order.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from popple.distributed import get_instance
from popple.engine.tensorflow import processes
from tensorflow_ipu._former_arguments import refused, with_former
from tensorflow_ipu._types import TensorLike

from ._instances import check_joined


@with_former(tensor="value", name="tensor_name")
def allgather(value: TensorLike, tensor_name: str | None = None) -> tf.Tensor:
    """The values of all instances along a new first dimension."""
    return _gather("allgather", value, tensor_name)


@with_former(
    tensor="value",
    op="reduce_op",
    name="tensor_name",
    prescale_factor=refused("multiply the value before"),
    postscale_factor=refused("multiply the result"),
)
def allreduce(
    value: TensorLike, reduce_op: Any = None, tensor_name: str | None = None
) -> tf.Tensor:
    """The sum or the mean of the values of all instances."""
    values = _gather("allreduce", value, tensor_name)
    total = tf.reduce_sum(values, axis=0)
    # Horovod's default, for programs that were written for it.
    mean = tf.distribute.ReduceOp.MEAN
    if reduce_op is not None and tf.distribute.ReduceOp(reduce_op) is not mean:
        return total
    if total.dtype.is_integer:
        return total // get_instance().count
    return total / get_instance().count


@with_former(tensor="value", name="tensor_name")
def broadcast(
    value: TensorLike, root_rank: int = 0, tensor_name: str | None = None
) -> tf.Tensor:
    """The value of instance `root_rank` in all instances."""
    return _gather("broadcast", value, tensor_name)[root_rank]


def _gather(what: str, value: TensorLike, tensor_name: str | None) -> tf.Tensor:
    check_joined(what)
    tensor = tf.convert_to_tensor(value)
    is_eager = tf.executing_eagerly()
    name = tensor_name or ("" if is_eager else tensor.name)
    return processes.gather(tf.expand_dims(tensor, 0), f"{what} {name}")
