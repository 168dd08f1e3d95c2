"""Sums and means over the replicas."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v2 as tf

from ._collectives import add, exchange, mean, same_for_all
from ._tensors import Tensor


def cross_replica_sum(
    x: Tensor, replica_group_size: int | None = None, name: str | None = None
) -> Tensor:
    """The sum of `x` over all replicas, or over groups of neighbouring replicas."""
    with tf.name_scope(name or "cross_replica_sum"):
        combine = same_for_all(add)
        return exchange(x, combine, combine, replica_group_size)


def cross_replica_mean(
    x: Tensor, replica_group_size: int | None = None, name: str | None = None
) -> Tensor:
    """The mean of `x` over all replicas, or over groups of neighbouring replicas."""
    with tf.name_scope(name or "cross_replica_mean"):
        combine = same_for_all(mean)
        return exchange(x, combine, combine, replica_group_size)


def assume_equal_across_replicas(
    tensors: tf.Tensor | Sequence[tf.Tensor], inplace: bool = False
) -> tf.Tensor | list[tf.Tensor]:
    """The same tensors, marked as having one value in all replicas.

    Conditions made from them may decide about exchanges between replicas. `inplace`
    only says whether the device copies them first.
    """
    return tf.nest.map_structure(tf.identity, tensors, expand_composites=True)
