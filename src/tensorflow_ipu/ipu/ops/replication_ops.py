"""Which replica computes."""

from __future__ import annotations

import tensorflow.compat.v2 as tf

from popple.engine.tensorflow import replicas

from ._tensors import Tensor


def replication_index(name: str | None = None) -> Tensor:
    """The number of the replica that computes this, an int32 scalar."""
    return tf.identity(replicas.replica_index(), name=name or "replication_index")
