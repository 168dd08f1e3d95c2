"""Summaries of what the device did, which SDKs up to 2.4 wrote for TensorBoard."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v2 as tf
from tensorflow.compiler.plugin.poplar.ops import gen_ipu_ops

__all__ = ["ipu_compile_summary"]


def ipu_compile_summary(
    name: str,
    op_list: tf.Tensor | tf.Operation | Sequence[tf.Tensor | tf.Operation],
    collections: Sequence[str] | None = None,
) -> tf.Tensor:
    """A summary of the trace events there are when all of `op_list` have run."""
    awaited = op_list if isinstance(op_list, list | tuple) else [op_list]
    with tf.device("cpu"), tf.control_dependencies(awaited):
        events = gen_ipu_ops.ipu_event_trace()
        v1 = tf.compat.v1
        return v1.summary.tensor_summary(name, events, collections=collections)
