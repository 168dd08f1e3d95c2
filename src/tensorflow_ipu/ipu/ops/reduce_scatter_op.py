"""Reductions over the replicas of which every replica keeps a piece."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v2 as tf

from ._collectives import exchange, reduction
from ._tensors import Tensor, same_or_list, sizes


def reduce_scatter(
    x: tf.Tensor | Sequence[tf.Tensor],
    replication_factor: int,
    op: str = "COLLECTIVE_OP_ADD",
    name: str | None = None,
) -> tf.Tensor | list[tf.Tensor]:
    """The group's vectors reduced element by element, a piece for each replica.

    The vector is filled up with zeros to a multiple of `replication_factor`. Lists of
    vectors give lists. `COLLECTIVE_OP_LOCAL` keeps the piece of this replica's vector.
    """
    with tf.name_scope(name or "reduce_scatter"):
        scattered = [
            _scatter(tf.convert_to_tensor(vector), replication_factor, op)
            for vector in tf.nest.flatten(x)
        ]
    return same_or_list(scattered)


def _scatter(vector: Tensor, size: int, op: str) -> Tensor:
    vector.shape.assert_has_rank(1)
    length = sizes(vector)[0]

    def pieces(whole: Tensor) -> list[Tensor]:
        return tf.split(tf.pad(whole, [[0, -length % size]]), size)

    def forward(vectors: list[Tensor]) -> list[Tensor]:
        if op == "COLLECTIVE_OP_LOCAL":
            return [pieces(v)[i] for i, v in enumerate(vectors)]
        return pieces(reduction(op)(vectors))

    def backward(gradients: list[Tensor]) -> list[Tensor]:
        return [tf.concat(gradients, 0)[:length]] * len(gradients)

    return exchange(vector, forward, backward, size)
