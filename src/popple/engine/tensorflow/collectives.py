"""What replicas exchange: every replica sends a tensor and receives one.

The first replica of a process leads: it takes what all have sent, in order of their
index, combines it and hands each its result. So sums are added in one order and every
replica receives the same bits. Tensors pass through queues by reference, nothing is
copied on the way.

Where several processes run the program, their leaders gather what the replicas of all
have sent and then do the same: results are the same bits however replicas are spread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v2 as tf

from popple.engine.tensorflow.processes import gather
from popple.engine.tensorflow.regions import region
from popple.engine.tensorflow.replicas import (
    num_local_replicas,
    num_replicas,
    per_replica,
    replica_index,
    replica_offset,
)
from popple.marks import EXCHANGE, NOTHING

__all__ = ["all_gather", "all_reduce_sum", "all_to_all", "exchange", "in_turn"]

Tensor = Any


def exchange(tensor: Tensor, combine: Callable[[list[Tensor]], list[Tensor]]) -> Tensor:
    """Send `tensor`; receive this replica's part of what `combine` makes of all.

    `combine` gets one tensor per replica and gives one result per replica; it is
    called while tracing and must give static shapes, the same for all.
    """
    tensor = tf.convert_to_tensor(tensor)
    if num_replicas() == 1:
        return combine([tensor])[0]
    if num_local_replicas() == 1:
        with region(EXCHANGE):
            (result,) = _combined([tensor], combine)
            return tf.identity(result)
    return _through_queues(tensor, combine)


def _through_queues(
    tensor: Tensor, combine: Callable[[list[Tensor]], list[Tensor]]
) -> Tensor:
    """`exchange` for several replicas of one process, the first of which leads."""
    count = num_local_replicas()
    like = _shape_of_result(tensor, combine)
    with tf.init_scope():
        sent = [_new_queue(tensor.dtype, tensor.shape) for _ in range(count)]
        given = [_new_queue(like.dtype, like.shape) for _ in range(count)]
    my_sent = per_replica([q.queue_ref for q in sent], lambda: _emptied(sent))
    my_given = per_replica([q.queue_ref for q in given], lambda: _emptied(given))

    def lead() -> Tensor:
        results = _combined([queue.dequeue() for queue in sent], combine)
        return tf.group(
            *(q.enqueue(part) for q, part in zip(given, results, strict=True))
        )

    with region(EXCHANGE):
        put = tf.raw_ops.QueueEnqueueV2(handle=my_sent, components=[tensor])
        with tf.control_dependencies([put]):
            first = tf.equal(replica_index(), replica_offset())
            led = tf.cond(first, lead, tf.no_op)
        with tf.control_dependencies([led]):
            return _take(my_given, like.dtype, like.shape)


def _combined(
    tensors: list[Tensor], combine: Callable[[list[Tensor]], list[Tensor]]
) -> list[Tensor]:
    """What `combine` makes for the replicas of this process, whose tensors are given.

    Everything is gathered, rather than added up on the way: sums are then those of one
    process to the last bit, at the price of larger messages.
    """
    if len(tensors) == num_replicas():
        return combine(tensors)
    everyone = tf.unstack(gather(tf.stack(tensors)), num_replicas())
    first = replica_offset()
    return combine(everyone)[first : first + len(tensors)]


def all_reduce_sum(tensor: Tensor, group_size: int | None = None) -> Tensor:
    """The sum over all replicas, or over groups of `group_size` neighbours."""

    def combine(tensors: list[Tensor]) -> list[Tensor]:
        size = group_size or len(tensors)
        starts = range(0, len(tensors), size)
        sums = [_sum(tensors[start : start + size]) for start in starts]
        return [sums[index // size] for index in range(len(tensors))]

    return exchange(tensor, combine)


def all_gather(tensor: Tensor) -> Tensor:
    """What all replicas sent, along a new first dimension."""

    def combine(tensors: list[Tensor]) -> list[Tensor]:
        return [tf.stack(tensors)] * len(tensors)

    return exchange(tensor, combine)


def all_to_all(tensor: Tensor) -> Tensor:
    """Row `s` of the result is row `r` of what replica `s` sent, in replica `r`."""

    def combine(tensors: list[Tensor]) -> list[Tensor]:
        return tf.unstack(tf.stack(tensors, axis=1))

    return exchange(tensor, combine)


def in_turn(act: Callable[[], Sequence[Tensor]]) -> list[Tensor]:
    """Do `act` in every replica, one after the other in the order of their index.

    Deals the elements of one shared source: element k goes to replica k mod R. Every
    process has a source of its own.
    """
    count = num_local_replicas()
    if count == 1:
        return list(act())
    with tf.init_scope():
        turns = [_new_queue(tf.bool, []) for _ in range(count)]

    def first_has_the_turn() -> list[Tensor]:
        with tf.control_dependencies(_emptied(turns)):
            return [turns[0].enqueue(True)]

    mine = per_replica([q.queue_ref for q in turns], first_has_the_turn)
    after = per_replica([turns[(r + 1) % count].queue_ref for r in range(count)])
    with region(NOTHING):
        turn = _take(mine, tf.bool, [])
    with tf.control_dependencies([turn]):
        results = list(act())
    with tf.control_dependencies(results), region(NOTHING):
        passed = tf.raw_ops.QueueEnqueueV2(handle=after, components=[True])
    with tf.control_dependencies([passed]):
        return [tf.identity(result) for result in results]


def _sum(tensors: list[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else tf.add_n(tensors)


def _shape_of_result(
    tensor: Tensor, combine: Callable[[list[Tensor]], list[Tensor]]
) -> Tensor:
    """Trace `combine` aside to learn what it makes."""
    spec = tf.TensorSpec(tensor.shape, tensor.dtype)
    with tf.Graph().as_default():
        inputs = [tf.compat.v1.placeholder(spec.dtype, spec.shape)] * num_replicas()
        return tf.TensorSpec.from_tensor(combine(inputs)[0])


def _new_queue(dtype: Any, shape: Any) -> Any:
    # Two places: a replica may send for its next step before all took the last one.
    return tf.queue.FIFOQueue(2, [dtype], [shape])


def _take(handle: Tensor, dtype: Any, shape: Any) -> Tensor:
    (value,) = tf.raw_ops.QueueDequeueV2(handle=handle, component_types=[dtype])
    value.set_shape(shape)
    return value


def _emptied(queues: Sequence[Any]) -> list[Tensor]:
    """Drop what a run that failed left in the queues."""
    return [tf.group(queue.dequeue_many(queue.size())) for queue in queues]
