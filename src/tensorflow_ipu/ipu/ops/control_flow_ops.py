"""Order between operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v2 as tf

from ._tensors import Gradient


def barrier(
    tensors: tf.Tensor | Sequence[tf.Tensor],
    insert_barrier_for_gradients: bool = False,
    name: str | None = None,
) -> tf.Tensor | list[tf.Tensor]:
    """The same tensors, each ready only when all of them have been computed.

    With `insert_barrier_for_gradients` the gradients wait for each other too.
    """

    def wait(*values: Any) -> list[Any]:
        with tf.control_dependencies([v for v in values if v is not None]):
            return [v if v is None else tf.identity(v) for v in values]

    @tf.custom_gradient
    def wait_both_ways(*values: Any) -> tuple[list[Any], Gradient]:
        return wait(*values), wait

    flat = tf.nest.flatten(tensors)
    with tf.name_scope(name or "Barrier"):
        waited = wait_both_ways(*flat) if insert_barrier_for_gradients else wait(*flat)
    return tf.nest.pack_sequence_as(tensors, list(waited))
