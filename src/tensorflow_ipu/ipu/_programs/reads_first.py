"""Reads of variables come before the updates that a program builds after them.

A step of training reads its weights and then updates them; the device's compiler keeps
that order. TensorFlow does it in functions. In the graphs of TensorFlow 1 it does not:
a bias, whose gradient does not need its value, could be updated before the loss reads
it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.framework import auto_control_deps_utils, ops
from tensorflow.python.ops import control_flow_util

# What hands a variable on, into loops and branches of TensorFlow 1.
_PASSING_ON = frozenset({"Enter", "Identity", "Switch"})


@contextlib.contextmanager
def reads_first() -> Iterator[list[Any]]:
    """Order what is built inside into the graph being built.

    Gives a list for operations that are to come before all others, wherever they are
    built.
    """
    graph: Any = ops.get_default_graph()
    first: list[Any] = []
    # TensorFlow orders reads and writes in functions itself.
    if tf.executing_eagerly() or graph._add_control_dependencies:
        yield first
        return
    num_before = graph.num_operations()
    yield first
    rest = [op for op in graph.get_operations()[num_before:] if op not in first]
    _order([*first, *rest])


def _order(operations: list[Any]) -> None:
    """Let operations that change a variable wait for those before that read it."""
    readers: dict[int, list[Any]] = {}
    for op in operations:
        if op.type in _PASSING_ON or not _has_resource(op):
            continue
        reads, writes = auto_control_deps_utils.get_read_write_resource_inputs(op)
        for handle in writes:
            waited_for = readers.get(id(_origin(handle)), ())
            op._add_control_inputs([r for r in waited_for if _reaches(r, op)])
        for handle in reads:
            readers.setdefault(id(_origin(handle)), []).append(op)


def _has_resource(op: tf.Operation) -> bool:
    return any(tensor.dtype == tf.resource for tensor in op.inputs)


def _origin(handle: tf.Tensor) -> tf.Tensor:
    """The variable itself, outside of the loops and branches that use it."""
    while handle.op.type in _PASSING_ON:
        handle = handle.op.inputs[0]
    return handle


def _reaches(reader: Any, writer: Any) -> bool:
    """Whether the reader runs whenever the writer does, once in the same loop."""
    around = reader._get_control_flow_context()
    within = writer._get_control_flow_context()
    loops = map(control_flow_util.GetContainingWhileContext, (around, within))
    if len({id(loop) for loop in loops}) > 1:
        return False
    while within is not None and within is not around:
        within = within.outer_context
    return within is around
