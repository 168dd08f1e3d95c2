"""Exchanges of pieces between replicas."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v2 as tf

from ._collectives import Combine, add, exchange
from ._tensors import Tensor, same_or_list


def all_to_all(
    x: Tensor,
    split_dimension: int,
    concat_dimension: int,
    replication_factor: int,
    name: str | None = None,
) -> Tensor:
    """Give every replica a piece of `x` and join the pieces received.

    `x` is cut along `split_dimension` into one piece per replica; the pieces received
    are joined along `concat_dimension` in the order of the replicas they came from.
    """
    with tf.name_scope(name or "all_to_all"):
        forward = _swap(split_dimension, concat_dimension)
        backward = _swap(concat_dimension, split_dimension)
        return exchange(x, forward, backward, replication_factor)


def all_gather(
    x: tf.Tensor | Sequence[tf.Tensor], replication_factor: int, name: str | None = None
) -> tf.Tensor | list[tf.Tensor]:
    """`x` of every replica of the group, along a new first dimension.

    Lists of tensors give lists.
    """

    def gather(tensors: list[Tensor]) -> list[Tensor]:
        return [tf.stack(tensors)] * len(tensors)

    def scatter(gradients: list[Tensor]) -> list[Tensor]:
        return tf.unstack(add(gradients))

    with tf.name_scope(name or "all_gather"):
        return same_or_list(
            [
                exchange(tensor, gather, scatter, replication_factor)
                for tensor in tf.nest.flatten(x)
            ]
        )


def _swap(split_dimension: int, concat_dimension: int) -> Combine:
    def combine(tensors: list[Tensor]) -> list[Tensor]:
        pieces = [tf.split(t, len(tensors), split_dimension) for t in tensors]
        return [tf.concat(part, concat_dimension) for part in zip(*pieces, strict=True)]

    return combine
