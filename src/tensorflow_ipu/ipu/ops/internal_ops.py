"""Operations about the machine: tile mapping, queues, printing, iteration counts."""

from __future__ import annotations

import logging
import sys
from typing import Any

import tensorflow.compat.v2 as tf

from .._programs.loop_counters import current_loop
from ._scratch import Scratch
from ._tensors import Tensor, sizes

_LOG = logging.getLogger("tensorflow")


def remap(x: Tensor, name: str | None = None) -> Tensor:
    """The same tensor, spread over the tiles anew."""
    _LOG.warning("remap is an internal operation")
    return tf.identity(x, name=name or "remap")


def remap_deduce(x: Tensor, name: str | None = None) -> Tensor:
    """The same tensor, with the tile mapping its users want."""
    return tf.identity(x, name=name or "remap_deduce")


def fifo(
    x: Tensor, depth: int, offload: bool = False, name: str | None = None
) -> Tensor:
    """What `x` was `depth` iterations of the surrounding loop ago; zeros before that.

    `offload` says where the device keeps the values.
    """
    if depth < 1:
        return x
    x = tf.convert_to_tensor(x)
    loop = current_loop()
    if loop is None:
        return tf.zeros_like(x, name=name)
    with tf.name_scope(name or "fifo"):
        ring = Scratch([depth, *sizes(x)], x.dtype)
        empty = tf.zeros(ring.shape, x.dtype)
        held = tf.cond(tf.equal(loop.counter, 0), lambda: empty, ring.read)
        place = tf.reshape(tf.math.floormod(loop.counter, depth), [1])
        oldest = tf.gather(held, place[0])
        updated = tf.tensor_scatter_nd_update(held, [place], [x])
        with tf.control_dependencies([ring.assign(updated)]):
            return tf.identity(oldest)


def recompute(input: Tensor, name: str | None = None) -> Tensor:
    """The same tensor; it once was a hint to compute it again."""
    return tf.identity(input, name=name or "recompute")


def block_recompute(input: Tensor, name: str | None = None) -> Tensor:
    """The same tensor; it once was a hint not to compute it again."""
    return tf.identity(input, name=name or "block_recompute")


def print_tensor(input: Tensor, name: str = "") -> tf.Operation:
    """An operation that writes a tensor to the standard error."""
    return tf.print(f"{name}:", input, output_stream=sys.stderr, summarize=-1)


def get_current_iteration_counter(name: str | None = None, **kwargs: Any) -> Tensor:
    """The number of the iteration of the surrounding loop or pipeline, from 0."""
    loop = current_loop()
    if loop is None:
        return tf.constant(0, name=name)
    return tf.identity(tf.cast(loop.counter, tf.int32), name=name)
