"""`horovod.tensorflow` between the instances of a job, over TensorFlow's collectives.

Programs ask it who they are. What they share with it goes through the host collectives
of `tensorflow.python.ipu.distributed`, once its strategy has met the other instances.
"""

# The IPU's part of TensorFlow is imported by names that only the import finder knows.
# pyright: reportMissingImports=false

from __future__ import annotations

import tensorflow as tf
from tensorflow.python.ipu import distributed as _distributed
from tensorflow.python.ipu.distributed import (
    init,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
)

__all__ = [
    "Average",
    "Sum",
    "allgather",
    "allreduce",
    "broadcast",
    "broadcast_variables",
    "init",
    "is_initialized",
    "local_rank",
    "local_size",
    "rank",
    "shutdown",
    "size",
]

Average, Sum = tf.distribute.ReduceOp.MEAN, tf.distribute.ReduceOp.SUM


def allreduce(
    tensor: tf.Tensor, name: str | None = None, op: tf.distribute.ReduceOp = Average
) -> tf.Tensor:
    """The mean of the tensors of all instances, or their sum."""
    return _distributed.allreduce(tensor, op, name)


def allgather(tensor: tf.Tensor, name: str | None = None) -> tf.Tensor:
    """The tensors of all instances, which are of one shape, joined along their first
    dimension."""
    gathered = _distributed.allgather(tensor, name)
    return tf.reshape(gathered, [-1, *gathered.shape[2:]])


def broadcast(tensor: tf.Tensor, root_rank: int, name: str | None = None) -> tf.Tensor:
    """The tensor of instance `root_rank`."""
    return _distributed.broadcast(tensor, root_rank, name)


def broadcast_variables(variables: list[tf.Variable], root_rank: int) -> None:
    """Overwrite variables with those of instance `root_rank`."""
    for variable in variables:
        variable.assign(broadcast(variable.read_value(), root_rank))
