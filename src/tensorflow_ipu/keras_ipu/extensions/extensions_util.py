"""Small functions on what comes back from the device."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

__all__ = ["merge_into_batch_dimension"]


def merge_into_batch_dimension(tensors: Any, local_replication_factor: int) -> Any:
    """Turn [steps, (replicas,) batch, ...] into [samples, ...], in sample order.

    Batch i * replicas + r went to replica r in step i, so the order is kept.
    """
    num_merged = 3 if local_replication_factor > 1 else 2

    def merge(tensor: Any) -> Any:
        return tf.reshape(tensor, [-1, *tensor.shape[num_merged:]])

    return tf.nest.map_structure(merge, tensors)
