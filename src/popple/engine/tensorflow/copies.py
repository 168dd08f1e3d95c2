"""The variables of a replicated program: one copy per replica.

Replica 0 works on the program's own variables, the others on copies that live as long
as the program. Copies are filled from the original when it was changed from outside
since the last run (or there was none): so weights set on the host reach every replica,
and what replicas keep to themselves, such as metrics, lasts from run to run.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.framework import auto_control_deps_utils
from tensorflow.python.ops import handle_data_util, resource_variable_ops

__all__ = ["VARYING", "VariableCopies"]

VARYING = "_popple_varying"
"""The attribute of captured tensors that have another value in each replica anyway."""

Tensor = Any


class _Copied:
    """One variable that the program writes: its handle, copies, and last value."""

    def __init__(self, original: Tensor, inside: Tensor, num_replicas: int) -> None:
        (kind,) = _handle_data(inside).shape_and_type
        self.dtype = tf.as_dtype(kind.dtype)
        self.shape = tf.TensorShape(kind.shape)
        self.original = original
        with tf.init_scope(), tf.device("/device:CPU:0"):
            self.copies = [self._new_variable() for _ in range(num_replicas - 1)]
            self._last = self._new_variable()

    def refresh(self) -> Tensor:
        """Fill the copies if the original is not what the last run left."""
        value = self._read(self.original)
        known = tf.raw_ops.VarIsInitializedOp(resource=self._last)
        same = tf.cond(
            known,
            lambda: _same_bits(self._read(self._last), value),
            lambda: tf.constant(False),
        )
        return tf.cond(same, tf.no_op, lambda: self._fill(value))

    def remember(self) -> Tensor:
        """Keep the value that the run left in the original."""
        return _assign(self._last, self._read(self.original))

    def _fill(self, value: Tensor) -> Tensor:
        return tf.group(*(_assign(copy, value) for copy in self.copies))

    def _read(self, handle: Tensor) -> Tensor:
        value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=self.dtype)
        value.set_shape(self.shape)
        return value

    def _new_variable(self) -> Tensor:
        handle = tf.raw_ops.VarHandleOp(
            dtype=self.dtype, shape=self.shape, shared_name=f"popple_{uuid.uuid4()}"
        )
        if tf.executing_eagerly():
            # Frees the variable together with the last reference to its handle.
            handle._popple_owner = resource_variable_ops.EagerResourceDeleter(
                handle=handle, handle_device=handle.device
            )
        return handle


class VariableCopies:
    """All variables that a traced program writes, with their copies."""

    def __init__(
        self, graph: Any, captures: Sequence[Tensor], num_replicas: int
    ) -> None:
        read_only = set(
            auto_control_deps_utils.get_read_only_resource_input_indices_graph(graph)
        )
        first = len(graph.inputs) - len(captures)
        self._copied = {
            id(capture): _Copied(capture, graph.inputs[index], num_replicas)
            for index, capture in enumerate(captures, first)
            if num_replicas > 1
            and index not in read_only
            and not hasattr(capture, VARYING)
            and _is_variable(graph.inputs[index])
        }

    def of(self, replica: int, capture: Tensor) -> Tensor:
        """What replica `replica` gets in the place of a captured tensor."""
        copied = self._copied.get(id(capture))
        if copied is None or replica == 0:
            return capture
        return copied.copies[replica - 1]

    def refresh(self) -> list[Tensor]:
        """Operations to run before the replicas."""
        return [copied.refresh() for copied in self._copied.values()]

    def remember(self) -> list[Tensor]:
        """Operations to run after the replicas."""
        return [copied.remember() for copied in self._copied.values()]


def _handle_data(tensor: Tensor) -> Any:
    return handle_data_util.get_resource_handle_data(tensor)


def _is_variable(inside: Tensor) -> bool:
    """Whether a captured tensor is a variable: other resources have no value type."""
    if inside.dtype != tf.resource:
        return False
    data = _handle_data(inside)
    return data is not None and data.is_set and len(data.shape_and_type) == 1


def _assign(handle: Tensor, value: Tensor) -> Tensor:
    return tf.raw_ops.AssignVariableOp(resource=handle, value=value)


def _same_bits(first: Tensor, second: Tensor) -> Tensor:
    """Whether two tensors hold the same bits; NaN equals itself here."""
    if first.dtype.is_floating or first.dtype.is_complex:
        first, second = tf.bitcast(first, tf.uint8), tf.bitcast(second, tf.uint8)
    return tf.reduce_all(tf.equal(first, second))
