"""Lookups in tables of vectors, on the device and on the host."""

from __future__ import annotations

import functools
from types import TracebackType
from typing import Any

import tensorflow.compat.v2 as tf

from popple.engine.tensorflow import replicas
from tensorflow_ipu._former_arguments import IGNORED, with_former
from tensorflow_ipu._types import DTypeLike, ShapeLike

from ._tensors import Gradient, Tensor, sizes


@with_former(one_hot_threshold=IGNORED, min_encoding_size=IGNORED)
def embedding_lookup(
    params: Any,
    ids: Tensor,
    serialization_factor: int = 1,
    indices_are_sorted: bool = False,
    name: str | None = None,
) -> Tensor:
    """The rows of `params` that `ids` name, with a dense gradient.

    An id out of range reads the nearest row and gives no gradient.
    `serialization_factor` cuts the lookup into that many smaller ones, which changes
    no value.
    """
    factor = int(serialization_factor)
    if factor < 1:
        raise ValueError(f"serialization_factor is {factor}, and has to be at least 1.")
    num_rows = sizes(params)[0]
    if num_rows % factor:
        raise ValueError(
            f"The serialization_factor ({factor}) must divide the size of the 0th "
            f"dimension of params ({num_rows})."
        )

    @tf.custom_gradient
    def lookup(table: Tensor, indices: Tensor) -> tuple[Tensor, Gradient]:
        rows = tf.gather(table, tf.clip_by_value(indices, 0, num_rows - 1))

        def gradient(upstream: Tensor) -> tuple[Tensor, None]:
            inside = tf.logical_and(indices >= 0, indices < num_rows)
            # Negative segments are left out of the sum.
            kept = tf.where(inside, indices, -1)
            return tf.math.unsorted_segment_sum(upstream, kept, num_rows), None

        return rows, gradient

    with tf.name_scope(name or "embedding_lookup"):
        return lookup(tf.convert_to_tensor(params), tf.convert_to_tensor(ids))


class HostEmbeddingOptimizerSpec:
    """How a table on the host is trained: by gradient descent."""

    def __init__(self, learning_rate: float, optimizer_name: str | None = None) -> None:
        self._learning_rate = learning_rate
        self._optimizer_name = optimizer_name or "SGD"

    def get_learning_rate(self) -> float:
        """The learning rate."""
        return self._learning_rate

    def create_slot_variables(
        self, embedding_tensor: tf.Tensor, name: str
    ) -> list[Any]:
        """Variables that training needs beside the table."""
        return []

    def create_register_instruction(
        self, embedding_tensor: tf.Tensor, slot_vars: list[Any], name: str
    ) -> tf.Operation:
        """The operation to run before the table is used."""
        return tf.group(*(slot.initializer for slot in slot_vars))

    def create_deregister_instruction(
        self, embedding_tensor: tf.Tensor, slot_vars: list[Any], name: str
    ) -> tf.Tensor:
        """The table, when it is no longer used by a program."""
        return tf.identity(embedding_tensor)

    def create_lookup_instruction(
        self,
        embedding_tensor: tf.Tensor,
        indices: Tensor,
        slot_vars: list[Any],
        partition_strategy: str,
        name: str,
    ) -> Tensor:
        """The rows that `indices` name; their gradient trains the table."""
        table = _Shared(embedding_tensor)
        rows = tf.stop_gradient(table.gather(indices))
        if self._learning_rate == 0:
            return rows
        slots = [_Shared(slot) for slot in slot_vars]

        @tf.custom_gradient
        def trained(_: Tensor) -> tuple[Tensor, Gradient]:
            def gradient(upstream: Tensor) -> Tensor:
                update = tf.cast(-self._learning_rate, upstream.dtype) * upstream
                with tf.control_dependencies(
                    [self._train(table, slots, indices, update)]
                ):
                    return tf.zeros([], rows.dtype)

            return tf.identity(rows), gradient

        # The optimiser of the program must ask for some gradient of the lookup.
        v1 = tf.compat.v1
        with v1.variable_scope(name, reuse=v1.AUTO_REUSE):
            asked = v1.get_variable("__dummy", [], rows.dtype, trainable=True)
        return trained(tf.convert_to_tensor(asked))

    def _train(
        self, table: _Shared, slots: list[_Shared], indices: Tensor, update: Tensor
    ) -> Any:
        return table.scatter_add(indices, update)


class HostEmbeddingSGDGAOptimizerSpec(HostEmbeddingOptimizerSpec):
    """The same, with the updates of several batches applied at once."""

    def __init__(self, learning_rate: float, accumulation_factor: int) -> None:
        super().__init__(learning_rate, "SGD+GA" if accumulation_factor > 1 else "SGD")
        self._accumulation_factor = accumulation_factor

    def get_accumulation_factor(self) -> int:
        """How many batches' updates are applied at once."""
        return self._accumulation_factor

    def create_slot_variables(
        self, embedding_tensor: tf.Tensor, name: str
    ) -> list[Any]:
        """The sum of updates and the number of batches in it."""
        if self._accumulation_factor <= 1:
            return []
        make = tf.compat.v1.Variable
        with tf.device("cpu"):
            zeros = tf.zeros(embedding_tensor.shape, embedding_tensor.dtype.base_dtype)
            return [
                make(zeros, trainable=False, use_resource=True, name=f"{name}_sum"),
                make(0, trainable=False, use_resource=True, name=f"{name}_count"),
            ]

    def _train(
        self, table: _Shared, slots: list[_Shared], indices: Tensor, update: Tensor
    ) -> Any:
        if not slots:
            return table.scatter_add(indices, update)
        total, count = slots
        with tf.control_dependencies([total.scatter_add(indices, update)]):
            counted = count.add(tf.constant(1))
        with tf.control_dependencies([counted]):
            is_last = tf.equal(count.read() % self._accumulation_factor, 0)

        def apply() -> Tensor:
            value = total.read()
            with tf.control_dependencies([table.add(value)]):
                emptied = total.assign(tf.zeros_like(value))
            with tf.control_dependencies([emptied]):
                return tf.constant(True)

        return tf.group(tf.cond(is_last, apply, lambda: tf.constant(False)))


class _Shared:
    """A variable on the host that all replicas of a program use together."""

    def __init__(self, variable: tf.Variable) -> None:
        self.dtype = variable.dtype.base_dtype
        self.shape = variable.shape
        self._handle = variable.handle
        if replicas.num_local_replicas() > 1:
            same = [variable.handle] * replicas.num_local_replicas()
            self._handle = replicas.per_replica(same)

    def read(self) -> Tensor:
        """Its value."""
        value = tf.raw_ops.ReadVariableOp(resource=self._handle, dtype=self.dtype)
        return tf.ensure_shape(value, self.shape)

    def gather(self, indices: Tensor) -> Tensor:
        """Some of its rows."""
        rows = tf.raw_ops.ResourceGather(
            resource=self._handle, indices=indices, dtype=self.dtype
        )
        return tf.ensure_shape(rows, [*sizes(indices), *self.shape[1:]])

    def assign(self, value: Tensor) -> tf.Operation:
        """Store a value."""
        return tf.raw_ops.AssignVariableOp(resource=self._handle, value=value)

    def add(self, value: Tensor) -> tf.Operation:
        """Add a value."""
        return tf.raw_ops.AssignAddVariableOp(resource=self._handle, value=value)

    def scatter_add(self, indices: Tensor, updates: Tensor) -> tf.Operation:
        """Add to some of its rows."""
        return tf.raw_ops.ResourceScatterAdd(
            resource=self._handle, indices=indices, updates=updates
        )


class HostEmbedding:
    """A table of vectors in the host's memory, looked up from the device.

    Its rows are tokens, its columns encodings. Programs use it inside `register`.
    """

    def __init__(
        self,
        name: str,
        embedding_tensor: tf.Tensor,
        partition_strategy: str = "TOKEN",
        optimizer_spec: HostEmbeddingOptimizerSpec | None = None,
    ) -> None:
        if not tf.is_tensor(embedding_tensor):
            raise ValueError(
                "The table of a HostEmbedding is a tensor, not "
                f"{type(embedding_tensor).__name__}."
            )
        if not isinstance(optimizer_spec, type(None) | HostEmbeddingOptimizerSpec):
            raise ValueError(
                "HostEmbedding optimizer_spec is not a HostEmbeddingOptimizerSpec or "
                "None"
            )
        if partition_strategy not in ("TOKEN", "ENCODING"):
            raise ValueError(
                f"Unknown partition strategy {partition_strategy}; there are TOKEN and "
                "ENCODING"
            )
        self._name = name
        self._embedding_tensor = embedding_tensor
        self._partition_strategy = partition_strategy
        self._optimizer_spec = optimizer_spec or HostEmbeddingOptimizerSpec(0)
        self._has_lookup = False
        self._slot_vars = self._optimizer_spec.create_slot_variables(
            embedding_tensor, name
        )

    def get_embedding_tensor(self) -> tf.Tensor:
        """The table."""
        return self._embedding_tensor

    def register(self, session: tf.compat.v1.Session | None = None) -> _Registration:
        """A context in which programs that `session` runs can use the table."""
        if session is None and not tf.executing_eagerly():
            raise ValueError(
                "HostEmbedding.register requires a session when eager execution is "
                "disabled."
            )
        return _Registration(self, session)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "HostEmbedding.__call__ is not supported: use the context manager that "
            "HostEmbedding.register gives."
        )

    @with_former(count=IGNORED)
    def lookup(self, indices: Tensor, clip_indices: bool = True) -> Tensor:
        """The rows that `indices` name, of shape [*indices.shape, columns].

        `clip_indices` reads the nearest row for an index out of range.
        """
        if clip_indices:
            last = sizes(self._embedding_tensor)[0] - 1
            indices = tf.clip_by_value(indices, 0, last)
        rows = self._optimizer_spec.create_lookup_instruction(
            self._embedding_tensor,
            tf.reshape(indices, [-1]),
            self._slot_vars,
            self._partition_strategy,
            self._name,
        )
        self._has_lookup = True
        shape = [*sizes(indices), sizes(self._embedding_tensor)[1]]
        return tf.reshape(rows, shape)


class _Registration:
    """The time in which programs use a table on the host."""

    def __init__(self, embedding: HostEmbedding, session: tf.compat.v1.Session) -> None:
        self._embedding = embedding
        self._session = session

    def __enter__(self) -> HostEmbedding:
        self._do(self._embedding._optimizer_spec.create_register_instruction)
        return self._embedding

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._do(self._embedding._optimizer_spec.create_deregister_instruction)

    def _do(self, create: Any) -> None:
        table = self._embedding
        if self._session is None:
            create(table._embedding_tensor, table._slot_vars, table._name)
            return
        with self._session.graph.as_default():
            self._session.run(
                create(table._embedding_tensor, table._slot_vars, table._name)
            )


def create_host_embedding(
    name: str,
    shape: ShapeLike,
    dtype: DTypeLike,
    partition_strategy: str = "TOKEN",
    optimizer_spec: HostEmbeddingOptimizerSpec | None = None,
    initializer: Any = None,
) -> HostEmbedding:
    """A new table on the host; zeros if there is no `initializer`.

    `partition_strategy` says how the device splits a table between replicas.
    """
    if initializer is None:
        initializer = tf.zeros(shape, dtype)
    if callable(initializer):
        first = functools.partial(initializer, shape, dtype=tf.as_dtype(dtype))
    else:
        first = initializer
    with tf.device("cpu"):
        table = tf.compat.v1.Variable(
            first, name=name, use_resource=True, trainable=False
        )
    return HostEmbedding(name, table, partition_strategy, optimizer_spec)
