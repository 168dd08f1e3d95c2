"""Errors of TensorFlow's classes, raised from Python or while a graph runs.

The original's kernels report some mistakes at run time with a class and phrase that
programs catch. TensorFlow lets no Python code choose the class of such an error, but it
has kernels that fail in each of these ways and show a name, and a name can say
anything. What such a kernel says around it is taken off where programs are called.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v2 as tf

ErrorClass = type[tf.errors.OpError]

# The texts of operations that may fail.
_TEXTS: set[str] = set()


def expect(message: str) -> None:
    """Say that an operation may fail with this text, for `in_plain_words` to find."""
    _TEXTS.add(message)


def error(kind: ErrorClass, message: str) -> tf.errors.OpError:
    """An error of a TensorFlow class, to raise from Python."""
    return kind(None, None, message)  # pyright: ignore


def failing(kind: ErrorClass, message: str) -> tf.Tensor | tf.Operation:
    """An operation that fails with this error when it runs; eagerly, at once."""
    if tf.executing_eagerly():
        raise error(kind, message)
    expect(message)
    return _FAILING[kind](message)


@contextlib.contextmanager
def in_plain_words() -> Iterator[None]:
    """Errors of `failing` operations that run inside say their text and no more."""
    try:
        yield
    except tf.errors.OpError as found:
        text = next((each for each in _TEXTS if each in found.message), None)
        if text is None:
            raise
        raise type(found)(found.node_def, found.op, text) from None


def failing_if(condition: Any, kind: ErrorClass, message: str) -> tf.Tensor:
    """An operation that fails with this error if `condition` holds when it runs."""
    if tf.executing_eagerly():
        return failing(kind, message) if bool(condition) else tf.constant(0)

    def fail() -> tf.Tensor:
        failed = failing(kind, message)
        # By value where it has one: an unused read may be optimised away.
        if not isinstance(failed, tf.Operation):
            return tf.cast(failed, tf.int32)
        with tf.control_dependencies([failed]):
            return tf.constant(0)

    return tf.cond(condition, fail, lambda: tf.constant(0))


def _nobodys_variable(name: str) -> tf.Tensor:
    return tf.raw_ops.VarHandleOp(
        dtype=tf.float32, shape=[], shared_name=name, container=name
    )


def _used(value: Any) -> tf.Operation:
    """An operation that needs `value`: TensorFlow leaves out what nobody needs."""
    return tf.raw_ops.Assert(condition=tf.math.is_finite(value), data=[value])


_FAILING: dict[ErrorClass, Callable[[str], Any]] = {
    tf.errors.FailedPreconditionError: lambda message: _used(
        tf.raw_ops.ReadVariableOp(resource=_nobodys_variable(message), dtype=tf.float32)
    ),
    tf.errors.NotFoundError: lambda message: tf.raw_ops.DestroyResourceOp(
        resource=_nobodys_variable(message), ignore_lookup_error=False
    ),
    # No assertion: a program that fails one is taken back.
    tf.errors.InvalidArgumentError: lambda message: (
        tf.raw_ops.CheckNumerics(tensor=math.nan, message=message).op
    ),
}
