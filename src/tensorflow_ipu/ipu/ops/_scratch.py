"""Memory that a program keeps between the iterations of a loop.

It belongs to the replica that uses it, needs no initialisation by the user and appears
in no collection of variables. It must be written before it is read.
"""

from __future__ import annotations

import tensorflow.compat.v2 as tf
from tensorflow.python.eager import context

from popple.engine.tensorflow import replicas
from tensorflow_ipu._types import ShapeLike

from ._tensors import Dtype, Tensor


class Scratch:
    """One tensor of `shape` and `dtype` that can be assigned and read."""

    def __init__(self, shape: ShapeLike, dtype: Dtype) -> None:
        self.shape = tf.TensorShape(shape)
        self.dtype = tf.as_dtype(dtype).base_dtype
        with tf.init_scope():
            handles = [self._new_handle() for _ in range(replicas.num_local_replicas())]
        # Every replica has its own: sums are exchanged when they are applied.
        self._handle = replicas.per_replica(handles)

    def read(self) -> Tensor:
        """What was assigned last."""
        value = tf.raw_ops.ReadVariableOp(resource=self._handle, dtype=self.dtype)
        return tf.ensure_shape(value, self.shape)

    def assign(self, value: Tensor) -> tf.Operation:
        """The operation that stores `value`."""
        return tf.raw_ops.AssignVariableOp(resource=self._handle, value=value)

    def _new_handle(self) -> Tensor:
        graph = tf.compat.v1.get_default_graph()
        eager = tf.executing_eagerly()
        # An anonymous variable of eager mode dies with its handle; one in a graph
        # needs a name that no other one has.
        name = context.anonymous_name() if eager else graph.unique_name("ipu_scratch")
        return tf.raw_ops.VarHandleOp(
            dtype=self.dtype, shape=self.shape, shared_name=name
        )
