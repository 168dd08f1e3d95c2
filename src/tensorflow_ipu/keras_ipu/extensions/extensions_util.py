"""Small functions on what comes back from the device."""

from __future__ import annotations

import tensorflow.compat.v2 as tf

from tensorflow_ipu._types import Tensors

__all__ = ["merge_into_batch_dimension"]


def merge_into_batch_dimension(
    tensors: Tensors, local_replication_factor: int
) -> Tensors:
    """Turn [steps, (replicas,) batch, ...] into [samples, ...], in sample order.

    Batch i * replicas + r went to replica r in step i, so the order is kept.
    """
    num_merged = 3 if local_replication_factor > 1 else 2

    def merge(tensor: tf.Tensor) -> tf.Tensor:
        return tf.reshape(tensor, [-1, *tensor.shape.as_list()[num_merged:]])

    return tf.nest.map_structure(merge, tensors)
