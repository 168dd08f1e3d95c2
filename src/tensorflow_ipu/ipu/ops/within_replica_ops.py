"""Collectives between the shards of one replica.

A list holds one tensor per shard, in the order of the shards. Every function returns a
list of the same kind, whose i-th tensor lies on shard i.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from .. import _errors, sharding
from ._collectives import reduction
from ._tensors import Tensor, sizes


def all_reduce(input_shards: list[Tensor], op: str) -> list[Tensor]:
    """On every shard the elementwise reduction of all shards' vectors.

    Shorter vectors are filled up with zeros.
    """
    shards = _checked(input_shards)
    vectors = _equal_vectors(shards)
    if op == "COLLECTIVE_OP_LOCAL":
        return vectors
    total = reduction(op)(vectors)
    return [tf.identity(total) for _ in vectors]


def reduce_scatter(input_shards: list[Tensor], op: str) -> list[Tensor]:
    """The elementwise reduction of all shards' vectors, a piece of it on each shard.

    Pieces have one element more or less; shorter ones are filled up with zeros.
    """
    shards = _checked(input_shards)
    vectors = _equal_vectors(shards)
    total = reduction(op)(vectors)
    length, num_shards = sizes(total)[0], len(vectors)
    lengths = [(length + num_shards - 1 - i) // num_shards for i in range(num_shards)]
    pieces = tf.split(total, lengths)
    return [tf.pad(p, [[0, lengths[0] - sizes(p)[0]]]) for p in pieces]


def all_gather(input_shards: list[Tensor], axis: int = 0) -> list[Tensor]:
    """On every shard all shards' tensors, joined along `axis`."""
    shards = _checked(input_shards)
    if shards[0].shape.rank == 0:
        joined = tf.stack(shards)
    else:
        _check_joinable(shards, axis)
        flat = tf.concat([tf.reshape(shard, [-1]) for shard in shards], 0)
        joined = tf.reshape(flat, _joined_shape(shards, axis))
    return [tf.identity(joined) for _ in shards]


def _equal_vectors(shards: list[Tensor]) -> list[Tensor]:
    vectors = [tf.reshape(s, [1]) if s.shape.rank == 0 else s for s in shards]
    longest = max(sizes(vector)[0] for vector in vectors)
    return [tf.pad(v, [[0, longest - sizes(v)[0]]]) for v in vectors]


def _joined_shape(shards: list[Tensor], axis: int) -> list[int]:
    shape = shards[0].shape.as_list()
    shape[axis] = sum(sizes(shard)[axis] for shard in shards)
    return shape


def _check_joinable(shards: list[Tensor], axis: int) -> None:
    def others(shard: Tensor) -> list[Any]:
        return [size for i, size in enumerate(sizes(shard)) if i != axis]

    for i, shard in enumerate(shards):
        if others(shard) != others(shards[0]):
            raise ValueError(
                f"Shards may differ in dimension {axis} only: shard 0 has the shape "
                f"{shards[0].shape} and shard {i} {shard.shape}."
            )


def _checked(shards: list[Tensor]) -> list[Tensor]:
    """The shards, refused here if they do not match and at run time if misplaced."""
    if len({id(shard) for shard in shards}) != len(shards):
        raise ValueError("input_shards has duplicate entries: list a tensor once.")
    if len({shard.dtype for shard in shards}) != 1:
        raise ValueError("Shards are of the same type, and these are not.")
    if len({shard.shape.rank for shard in shards}) != 1:
        raise ValueError("Shards are of the same rank, and these are not.")
    placed = [_shard_of(shard) for shard in shards]
    misplaced = any(p is not None and p != i for i, p in enumerate(placed))
    if not misplaced:
        return shards
    refused = _errors.failing(
        tf.errors.FailedPreconditionError,
        f"The tensors must be given in the order of the shards; they lie on {placed}",
    )
    with tf.control_dependencies([refused]):
        return [tf.identity(shard) for shard in shards]


def _shard_of(tensor: Tensor) -> int | None:
    """The shard a tensor is placed on, as far as it is known."""
    if tf.executing_eagerly():
        return None
    shards = sharding.get_sharding(tensor.op)
    return shards[0] if shards and len(set(shards)) == 1 else None
