"""Outfeeds: what a program hands to the host while it runs.

An outfeed is one TensorFlow queue per replica, made when a program first enqueues. The
host can take from it at any time, also while the program runs.
"""

from __future__ import annotations

import collections
import enum
import threading
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.framework import func_graph, ops

from popple.engine.tensorflow import num_local_replicas, per_replica
from tensorflow_ipu._translate import note_if_set
from tensorflow_ipu._types import Tensors

from . import _device, _errors
from ._device import feeds
from ._executables import tracing
from ._former_feeds import OUT_ORDER, with_former_order
from ._programs import compilation

# The host takes when it likes: nothing may wait for it.
_CAPACITY = 2**31 - 1
_DEFAULT_DEPTH = 3


class IPUOutfeedMode(enum.Enum):
    """Whether the host gets all that was enqueued, or what came last."""

    ALL = "all"
    LAST = "get_last"


def _read_outfeed_all(kwargs: dict[str, Any]) -> None:
    """`outfeed_all` was there before modes were."""
    wants_all = kwargs.pop("outfeed_all", None)
    if wants_all is None:
        return
    if kwargs.get("outfeed_mode") is not None:
        raise ValueError(
            "An outfeed is given both `outfeed_all` and `outfeed_mode`: keep the mode."
        )
    kwargs["outfeed_mode"] = IPUOutfeedMode.ALL if wants_all else IPUOutfeedMode.LAST


class _Buffers:
    """The queues of one outfeed in one graph (or eagerly), one per replica."""

    def __init__(self, types: list[Any], shapes: list[Any], count: int) -> None:
        self.kind = (types, shapes, count)
        with tf.device("/device:CPU:0"):
            self.queues: list[Any] = [
                tf.queue.FIFOQueue(_CAPACITY, types, shapes) for _ in range(count)
            ]

    def enqueue(self, tensors: list[Any], keep_all: bool) -> tf.Operation:
        """Put the tensors of this replica in."""
        mine = self.queues[0].queue_ref
        if len(self.queues) > 1:
            mine = per_replica([queue.queue_ref for queue in self.queues])
        dropped = [] if keep_all else [self._emptied(mine)]
        with tf.control_dependencies(dropped):
            return tf.raw_ops.QueueEnqueueV2(handle=mine, components=tensors)

    def _emptied(self, handle: tf.Tensor) -> tf.Operation:
        size = tf.raw_ops.QueueSizeV2(handle=handle)
        return tf.group(
            *tf.raw_ops.QueueDequeueManyV2(
                handle=handle, n=size, component_types=self.kind[0]
            )
        )

    def size(self) -> tf.Tensor:
        """How many elements every replica has put in."""
        sizes = [queue.size() for queue in self.queues]
        return sizes[0] if len(sizes) == 1 else tf.reduce_min(tf.stack(sizes))

    def take(self, number: Any) -> list[Any]:
        """So many elements: [number, (replicas,) *shape] each."""
        taken = [_as_list(queue.dequeue_many(number)) for queue in self.queues]
        if len(taken) == 1:
            return taken[0]
        return [tf.stack(parts, axis=1) for parts in zip(*taken, strict=True)]


class IPUOutfeedQueue(collections.abc.Iterable):
    """Takes tensors from a program to the host."""

    @with_former_order(0, OUT_ORDER, _read_outfeed_all)
    def __init__(
        self,
        outfeed_mode: IPUOutfeedMode | None = None,
        device_ordinal: int | None = None,
        buffer_depth: int = _DEFAULT_DEPTH,
        optimise_latency: bool = False,
    ) -> None:
        self._outfeed_mode = outfeed_mode or IPUOutfeedMode.ALL
        if not isinstance(self._outfeed_mode, IPUOutfeedMode):
            raise ValueError(
                "`outfeed_mode` is an `ipu_outfeed_queue.IPUOutfeedMode`, not"
                f" {type(outfeed_mode).__name__}."
            )
        self._device_ordinal = feeds.checked_ordinal(device_ordinal)
        if buffer_depth <= 0:
            raise ValueError("Outfeed buffer depth cannot be less than 1")
        self._outfeed_all = self._outfeed_mode is IPUOutfeedMode.ALL
        self._buffer_depth = buffer_depth
        self._optimise_latency = optimise_latency
        note_if_set(
            "IPUOutfeedQueue",
            buffer_depth=(buffer_depth, _DEFAULT_DEPTH),
            optimise_latency=(optimise_latency, False),
        )
        self._feed_name = feeds.new_name()
        self._structure: Any = None
        self._operations: list[Any] = []
        self._enqueuing_thread: int | None = None
        self._enqueuing_graph: Any = None
        # By graph, None being eager execution; dequeues are what the user has.
        self._buffers: dict[Any, _Buffers] = {}
        self._dequeues: dict[Any, list[list[Any]]] = {}

    def enqueue(self, tensors: Tensors) -> tf.Operation:
        """Hand a tensor, or a structure of tensors, to the host; the operation."""
        recorder = tracing.recorder()
        if recorder is not None:
            return recorder.enqueue(self._feed_name, _as_tensors(tensors))
        if self.enqueued:
            raise ValueError(
                "An outfeed can only be enqueued once. Enqueue a tuple of everything,"
                " or use a queue for each."
            )
        flat = _as_tensors(tensors)
        self._structure = tf.nest.map_structure(lambda _: None, tensors)
        self._enqueuing_thread = threading.get_ident()
        self._enqueuing_graph = ops.get_default_graph()
        operation = self._enqueue_flat(flat)
        self._operations.append(operation)
        return operation

    def _enqueue_flat(self, flat: list[Any]) -> tf.Operation:
        shapes = [tensor.shape for tensor in flat]
        try:
            feeds.check_sizes("outfeed", shapes)
        except tf.errors.InvalidArgumentError as error:
            return _errors.failing(tf.errors.InvalidArgumentError, error.message)
        kind = ([tensor.dtype for tensor in flat], shapes, num_local_replicas())
        buffers = self._buffers_of(kind)
        if feeds.has_synthetic_outfeeds():
            return tf.no_op()
        with tf.device(f"/device:IPU:{self._device_ordinal}"):
            return buffers.enqueue(flat, self._outfeed_all)

    def _buffers_of(self, kind: Any) -> _Buffers:
        with tf.init_scope():
            key = None if tf.executing_eagerly() else ops.get_default_graph()
            known = self._buffers.get(key)
            if known is None or known.kind != kind:
                # Of another shape or number of replicas: queues of TensorFlow cannot be
                # changed.
                known = self._buffers[key] = _Buffers(*kind)
                self._tie_dequeues(key, known)
            return known

    def _tie_dequeues(self, graph: tf.Graph, buffers: _Buffers) -> None:
        """Let what was dequeued in a graph come from new queues.

        The program was built again, for another number of replicas.
        """
        for held in self._dequeues.get(graph, ()):
            for old, new in zip(held, self._take(buffers), strict=True):
                old.op._update_input(0, _of_any_shape(new))

    @property
    def enqueued(self) -> bool:
        """Whether the graph in scope, or a function traced in it, enqueues."""
        if self._enqueuing_thread is None:
            return False
        here = ops.get_default_graph()
        if threading.get_ident() != self._enqueuing_thread:
            here = self._enqueuing_graph
        return any(
            here in _with_outer(op.graph)
            for op in self._operations
            if not compilation.is_discarded(op)
        )

    def dequeue(self, wait_for_completion: bool = False) -> Tensors:
        """What was enqueued since the last call.

        All of it along a new first dimension, or only the last; with several replicas
        the next dimension counts them.
        """
        del wait_for_completion  # a run here ends before its call returns
        eager = tf.executing_eagerly()
        if not self.enqueued:
            if eager and threading.get_ident() != self._enqueuing_thread:
                return []
            raise ValueError(
                "Trying to dequeue an outfeed which has not been enqueued: run, or"
                " build, the program that enqueues first."
            )
        key = None if eager else ops.get_default_graph()
        with tf.device("/device:CPU:0"):
            flat = self._take(self._buffers[key])
            if not eager:
                flat = self._held(key, flat)
        return tf.nest.pack_sequence_as(self._structure, flat)

    def _held(self, graph: tf.Graph, flat: list[Any]) -> list[Any]:
        """The same for the user to hold, able to come from other queues later."""
        held = [tf.identity(_of_any_shape(tensor)) for tensor in flat]
        self._dequeues.setdefault(graph, []).append(held)
        if not _device.configured(self._device_ordinal):
            return held
        # The number of replicas is settled, unless the device is configured again.
        shown = [tf.identity(tensor) for tensor in held]
        for tensor, of_known_shape in zip(shown, flat, strict=True):
            tensor.set_shape(of_known_shape.shape)
        return shown

    def _take(self, buffers: _Buffers) -> list[Any]:
        size = buffers.size()
        if self._outfeed_all:
            return buffers.take(size)
        why = (
            # The phrase, misspelt, is what programs look for.
            "when using synthethic data. This is not supported."
            if feeds.has_synthetic_outfeeds()
            else "to which nothing was added since it was last read. Run the program."
        )
        checked = _errors.failing_if(
            tf.equal(size, 0),
            tf.errors.FailedPreconditionError,
            f"Trying to get the last value from an outfeed queue {why}",
        )
        return [tensor[-1] for tensor in buffers.take(size + checked)]

    @property
    def deleter(self) -> tf.Operation:
        """Drops what is left in the queue; in graphs, an operation."""
        key = None if tf.executing_eagerly() else ops.get_default_graph()
        if key not in self._buffers:
            return tf.no_op()
        buffers = self._buffers[key]
        return tf.group(*buffers.take(buffers.size()))

    def __iter__(self) -> IPUOutfeedQueueIterator:
        if not tf.executing_eagerly():
            raise RuntimeError(
                "IPUOutfeedQueue can only be iterated over in eager mode; in a graph,"
                " use `dequeue()`."
            )
        if not self._outfeed_all:
            raise RuntimeError(
                "An IPUOutfeedQueue can only be iterated over in the mode"
                " `IPUOutfeedMode.ALL`; use `dequeue()`."
            )
        return IPUOutfeedQueueIterator(self)


class IPUOutfeedQueueIterator(Iterator[Any]):
    """Goes through what is in an outfeed, element by element."""

    def __init__(self, outfeed_queue: IPUOutfeedQueue) -> None:
        self._outfeed_queue = outfeed_queue
        self._waiting: collections.deque[Any] = collections.deque()

    def __iter__(self) -> IPUOutfeedQueueIterator:
        return self

    def __next__(self) -> Tensors:
        if not self._waiting:
            self._fetch()
        if not self._waiting:
            raise StopIteration
        return self._waiting.popleft()

    def _fetch(self) -> None:
        results = self._outfeed_queue.dequeue()
        flat = tf.nest.flatten(results)
        for index in range(len(flat[0]) if flat else 0):
            element = [tensor[index] for tensor in flat]
            self._waiting.append(tf.nest.pack_sequence_as(results, element))


class ScopedIPUOutfeedQueue(IPUOutfeedQueue):
    """An outfeed that goes, with what is left in it, when nothing refers to it."""

    def __init__(
        self,
        outfeed_mode: IPUOutfeedMode | None = None,
        device_ordinal: int | None = None,
    ) -> None:
        if not tf.executing_eagerly():
            raise RuntimeError(
                "ScopedIPUOutfeedQueue can only be created in eager mode; in a graph,"
                " use IPUOutfeedQueue."
            )
        super().__init__(outfeed_mode, device_ordinal)


def _of_any_shape(tensor: tf.Tensor) -> tf.Tensor:
    """The tensor, able to become one of another shape: replicas add a dimension."""
    unknown = tf.TensorShape(None)
    return tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=unknown)


def _as_tensors(values: Tensors) -> list[Any]:
    return [tf.convert_to_tensor(value) for value in tf.nest.flatten(values)]


def _as_list(values: Tensors) -> list[Any]:
    return list(values) if isinstance(values, list | tuple) else [values]


def _with_outer(graph: Any) -> Iterator[Any]:
    """A graph and the graphs that it was traced in."""
    yield graph
    while isinstance(graph, func_graph.FuncGraph):
        graph = graph.outer_graph
        yield graph
