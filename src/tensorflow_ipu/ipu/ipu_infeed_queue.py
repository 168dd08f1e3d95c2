"""Infeeds: data sets that a program reads while it runs.

An infeed is a named TensorFlow iterator over the data set; making it again restarts it.
Element k goes to replica k mod R.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import tensorflow.compat.v2 as tf
from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.data.util import structure
from tensorflow.python.framework import func_graph, type_spec

from popple.engine.tensorflow import in_turn, num_local_replicas
from tensorflow_ipu._translate import note_if_set
from tensorflow_ipu._types import Tensors

from . import _device, _errors, loops
from ._device import feeds
from ._executables import tracing
from ._former_feeds import IN_ORDER, with_former_order
from ._programs import compilation

_DEFAULT_PREFETCH_DEPTH = 3
_MOST_PREFETCH_DEPTH = 255
_CPU = "/device:CPU:0"
# The types that the device has streams for.
_SUPPORTED = (tf.float16, tf.float32, tf.int8, tf.int32, tf.uint8, tf.bool)


@dataclass(frozen=True)
class _Reader:
    """A place in a graph of TensorFlow 1 that reads an infeed, and its program."""

    op: Any
    num_replicas: int
    num_ipus: int


class IPUInfeedQueue:
    """A data set as the input of a loop on the device."""

    @with_former_order(1, IN_ORDER)
    def __init__(
        self,
        dataset: tf.data.Dataset,
        device_ordinal: int | None = None,
        prefetch_depth: int | None = None,
        optimise_latency: bool = False,
    ) -> None:
        self._structure = dataset.element_spec
        shapes = structure.get_flat_tensor_shapes(self._structure)
        _check_shapes(shapes)
        self._flat_structure = {
            "output_types": structure.get_flat_tensor_types(self._structure),
            "output_shapes": shapes,
        }
        self._prefetch_depth = _checked_prefetch_depth(prefetch_depth)
        self._device_ordinal = feeds.checked_ordinal(device_ordinal)
        self._optimise_latency = optimise_latency
        note_if_set("IPUInfeedQueue", optimise_latency=(optimise_latency, False))
        self._id = feeds.new_name()
        self._initialized = False
        self._dequeued = False
        self._from_spec = False
        self._readers: list[_Reader] = []
        self._fed = feeds.synthetic_or_real(dataset)
        self._dataset = self._prefetched()
        self._handle = self._new_handle()

    def _prefetched(self) -> tf.data.Dataset:
        # Made while the program runs, as the device fetches ahead.
        return self._fed.prefetch(self._prefetch_depth)

    def _restart(self, dataset: tf.data.Dataset) -> None:
        """Read another data set of the same structure; programs need not know."""
        fed = feeds.synthetic_or_real(dataset)
        # TensorFlow optimises a data set when it is first read, and keeps the result.
        if fed is not self._fed:
            self._fed = fed
            self._dataset = self._prefetched()
        _ = self.initializer

    @property
    def dequeued(self) -> bool:
        """Whether a program reads this infeed."""
        return self._dequeued

    @property
    def number_of_tuple_elements(self) -> int:
        """How many arguments an element gives to the body of a loop."""
        args, kwargs = loops._body_arguments(self._structure)
        return len(args) + len(kwargs)

    @property
    def initializer(self) -> tf.Operation | None:
        """Starts the data set from its first element; in graphs, an operation."""
        if self._from_spec:
            raise RuntimeError(
                "An IPUInfeedQueue created from a spec has an initialized queue:"
                " use the initializer of the first one."
            )
        if self._initialized and not tf.executing_eagerly():
            raise ValueError(
                "The `initializer` of an infeed can only be accessed once: keep the"
                " operation that it gave."
            )
        self._check_types()
        feeds.check_sizes("infeed", self._flat_structure["output_shapes"])
        self._initialized = True
        # Programs ask for it after they have left the graph that the queue is in.
        with self._graph_scope(), tf.device(_CPU):
            return tf.raw_ops.MakeIterator(
                dataset=self._dataset._variant_tensor, iterator=self._handle
            )

    @property
    def deleter(self) -> tf.Operation | None:
        """Frees the data set's iterator; in graphs, an operation."""
        if self._from_spec:
            raise RuntimeError("IPUInfeedQueue created from spec cannot be deleted.")
        if not self._initialized:
            return _errors.failing(
                tf.errors.NotFoundError,
                f"Infeed with id={self._id} was never initialized, so there is nothing"
                " to delete: use its `initializer` first.",
            )
        # An empty data set in its place: the iterator itself can be made again.
        with self._graph_scope(), tf.device(_CPU):
            return tf.raw_ops.MakeIterator(
                dataset=self._dataset.take(0)._variant_tensor, iterator=self._handle
            )

    def get_next(self) -> NoReturn:
        """Refused: loops read the infeed themselves."""
        raise ValueError(
            "`get_next()` is obsolete: pass the queue to the loop, which reads it and"
            " gives its elements to the body."
        )

    def _dequeue(self) -> Tensors:
        """The next element, as the structure of the data set."""
        self._dequeued = True
        with tf.control_dependencies(self._replicas_mixed()):
            flat = in_turn(self._next_flat)
        if flat and _in_old_graph():
            reader = _Reader(flat[0].op, num_local_replicas(), self._num_ipus())
            self._readers.append(reader)
        return structure.from_tensor_list(self._structure, flat)

    def _replicas_mixed(self) -> list[Any]:
        """An operation that fails, if a program with other replicas reads too."""
        others = {
            reader.num_replicas
            for reader in self._readers
            if reader.num_ipus == self._num_ipus()
            and not compilation.is_discarded(reader.op)
        }
        count = num_local_replicas()
        if not others - {count}:
            return []
        return [
            _errors.failing(
                tf.errors.FailedPreconditionError,
                f"The infeed is set up for a program of {min(others)} replicas, and"
                f" this one has {count}. Use an IPUInfeedQueue for each.",
            )
        ]

    def _num_ipus(self) -> int:
        return _device.num_ipus(self._device_ordinal)

    def _next_flat(self) -> Sequence[Any]:
        recorder = tracing.recorder()
        if recorder is not None:
            return recorder.dequeue(self._id, *self._flat_structure.values())
        handle = self._new_handle() if self._from_spec else self._handle
        with tf.device(_CPU):
            return tf.raw_ops.IteratorGetNext(iterator=handle, **self._flat_structure)

    def _graph_scope(self) -> contextlib.AbstractContextManager[Any]:
        """The graph of TensorFlow 1 that the queue was made in, if it was in one."""
        graph = getattr(self._dataset._variant_tensor, "graph", None)
        is_plain = graph is not None and not isinstance(graph, func_graph.FuncGraph)
        return graph.as_default() if is_plain else contextlib.nullcontext()

    def _new_handle(self) -> tf.Tensor:
        """The iterator of this name, made where there is none yet."""
        with tf.init_scope(), tf.device(_CPU):
            return tf.raw_ops.IteratorV2(
                # By name, so that other ends of the queue find the same iterator.
                shared_name=f"popple_infeed_{self._id}",
                container="",
                **self._flat_structure,
            )

    def _check_types(self) -> None:
        for index, dtype in enumerate(self._flat_structure["output_types"]):
            if dtype not in _SUPPORTED:
                name = "double" if dtype == tf.float64 else dtype.name
                raise _errors.error(
                    tf.errors.FailedPreconditionError,
                    f"Unsupported datatype {name} on index {index} of feed operation."
                    " Cast it in the data set, for example to int32 or float32.",
                )

    @property
    def _type_spec(self) -> _IPUInfeedQueueSpec:
        if not self._initialized:
            raise RuntimeError(
                "No Spec for IPUInfeedQueue yet: run its `initializer` first."
            )
        return _IPUInfeedQueueSpec(
            self._id,
            self._structure,
            self._flat_structure,
            self._device_ordinal,
            self._prefetch_depth,
            self._optimise_latency,
        )

    @classmethod
    def _from_type_spec(cls, spec: _IPUInfeedQueueSpec) -> IPUInfeedQueue:
        """Another end of the queue that `spec` was taken from."""
        queue = cls.__new__(cls)
        for name in _IPUInfeedQueueSpec.__slots__:
            setattr(queue, name, getattr(spec, name))
        queue._initialized = queue._dequeued = queue._from_spec = True
        queue._readers = []
        return queue


class _IPUInfeedQueueSpec(type_spec.TypeSpec):
    """Says which infeed a value is; carries no tensors."""

    __slots__ = (
        "_device_ordinal",
        "_flat_structure",
        "_id",
        "_optimise_latency",
        "_prefetch_depth",
        "_structure",
    )

    def __init__(
        self,
        name: str,
        structure: Any,
        flat_structure: Any,
        device_ordinal: int,
        prefetch_depth: int,
        optimise_latency: bool,
    ) -> None:
        self._id = name
        self._structure = structure
        self._flat_structure = flat_structure
        self._device_ordinal = device_ordinal
        self._prefetch_depth = prefetch_depth
        self._optimise_latency = optimise_latency

    @property
    def value_type(self) -> type[IPUInfeedQueue]:
        return IPUInfeedQueue

    def _serialize(self) -> tuple[object, ...]:
        return (
            self._id,
            self._structure,
            self._flat_structure,
            self._device_ordinal,
            self._prefetch_depth,
            self._optimise_latency,
        )

    @property
    def _component_specs(self) -> tuple[()]:
        return ()

    def _to_components(self, value: Any) -> tuple[()]:
        return ()

    def _from_components(self, components: Any) -> IPUInfeedQueue:
        return IPUInfeedQueue._from_type_spec(self)


class IPUIterator(iterator_ops.OwnedIterator):
    """An iterator over a data set that only IPU programs can read."""

    def __init__(
        self,
        dataset: tf.data.Dataset | None = None,
        infeed_spec: Any = None,
        element_spec: Any = None,
        **queue_options: Any,
    ) -> None:
        # Past OwnedIterator, which would make an iterator of its own.
        super(iterator_ops.OwnedIterator, self).__init__()
        from_spec = infeed_spec is not None and element_spec is not None
        from_part = infeed_spec is not None or element_spec is not None
        if (dataset is None and not from_spec) or (dataset is not None and from_part):
            raise ValueError(
                "Give `dataset`, or `infeed_spec` together with `element_spec`."
            )
        if dataset is None:
            self._infeed_queue = infeed_spec._from_components(None)
        else:
            self._infeed_queue = IPUInfeedQueue(dataset, **queue_options)
            _ = self._infeed_queue.initializer
            element_spec = dataset.element_spec
        self._element_spec: Any = element_spec
        self._infeed_spec = self._infeed_queue._type_spec
        self._flat_output_types = structure.get_flat_tensor_types(element_spec)
        self._flat_output_shapes = structure.get_flat_tensor_shapes(element_spec)

    def __iter__(self) -> IPUIterator:
        return self

    def __next__(self) -> Tensors:
        return self._next_internal()

    def next(self) -> Tensors:
        """The next element."""
        return self._next_internal()

    def get_next(self) -> Tensors:
        """The next element."""
        return self._next_internal()

    def get_next_as_optional(self) -> NoReturn:
        """Refused: the device has no optional values."""
        raise NotImplementedError(
            "IPU Dataset iterator does not support get_next_as_optional(): loop over"
            " `tf.range(steps)` and call `next(iterator)`."
        )

    @property
    def element_spec(self) -> type_spec.TypeSpec:
        """The structure of an element."""
        return self._element_spec

    @property
    def infeed_spec(self) -> _IPUInfeedQueueSpec:
        """Which infeed this iterator reads."""
        return self._infeed_spec

    @property
    def _type_spec(self) -> _IPUIteratorSpec:
        return _IPUIteratorSpec(self.infeed_spec, self.element_spec)

    def _next_internal(self) -> Tensors:
        if tf.executing_eagerly():
            raise RuntimeError(
                "Accessing dataset elements is not possible in eager mode inside an"
                " IPUStrategy: read them inside a `tf.function` that the strategy runs,"
                " or create the strategy with `enable_dataset_iterators=False`."
            )
        return self._infeed_queue._dequeue()

    def _gather_saveables_for_checkpoint(self) -> NoReturn:
        raise NotImplementedError(
            "IPU Dataset iterator is not currently saveable: keep it out of the"
            " checkpoint."
        )


class IPUOwnedIterator(IPUIterator):
    """An :class:`IPUIterator` whose infeed goes when it goes."""

    @property
    def _type_spec(self) -> _IPUIteratorSpec:
        return _IPUOwnedIteratorSpec(self.infeed_spec, self.element_spec)

    def __del__(self) -> None:
        queue: Any = getattr(self, "_infeed_queue", None)
        if queue is None or queue._from_spec or not tf.executing_eagerly():
            return
        with contextlib.suppress(tf.errors.OpError):
            tf.raw_ops.DestroyResourceOp(
                resource=queue._handle, ignore_lookup_error=True
            )


class _IPUIteratorSpec(type_spec.TypeSpec):
    """Says which infeed an iterator reads; carries no tensors."""

    __slots__ = ("_element_spec", "_infeed_spec")

    def __init__(self, infeed_spec: Any, element_spec: Any) -> None:
        self._infeed_spec = infeed_spec
        self._element_spec = element_spec

    @property
    def value_type(self) -> type[IPUIterator]:
        return IPUIterator

    def _serialize(self) -> tuple[object, ...]:
        return (self._infeed_spec, self._element_spec)

    @property
    def _component_specs(self) -> tuple[()]:
        return ()

    def _to_components(self, value: Any) -> tuple[()]:
        return ()

    def _from_components(self, components: Any) -> IPUIterator:
        return self.value_type(
            infeed_spec=self._infeed_spec, element_spec=self._element_spec
        )

    @classmethod
    def from_value(cls, value: Any) -> _IPUIteratorSpec:
        """The spec of an iterator."""
        return cls(value.infeed_spec, value.element_spec)


class _IPUOwnedIteratorSpec(_IPUIteratorSpec):
    """The same of an iterator that owns its infeed."""

    __slots__ = ()

    @property
    def value_type(self) -> type[IPUIterator]:
        return IPUOwnedIterator


def _in_old_graph() -> bool:
    """Whether the program is built into a graph of TensorFlow 1."""
    with tf.init_scope():
        return not tf.executing_eagerly()


def _check_shapes(shapes: Sequence[Any]) -> None:
    for shape in shapes:
        if not shape.is_fully_defined():
            raise ValueError(
                f"Output shape {shape} is not fully defined, and programs for the IPU"
                " have static shapes. Where it comes from `batch()`, set"
                " `drop_remainder=True`."
            )


def _checked_prefetch_depth(prefetch_depth: int | None) -> int:
    depth = prefetch_depth or _DEFAULT_PREFETCH_DEPTH
    if depth <= 0:
        raise ValueError(f"prefetch_depth must be greater than zero, not {depth}.")
    if depth > _MOST_PREFETCH_DEPTH:
        raise ValueError(f"prefetch_depth is {depth}, and must be less than 256.")
    return depth
