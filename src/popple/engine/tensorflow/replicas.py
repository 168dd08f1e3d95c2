"""One traced program, run by several replicas at once.

The program is traced a single time and called once per replica in one outer graph.
Where several processes run it together, each calls it for its own replicas, which are
numbered through all processes.
What differs between replicas reaches the program as a captured tensor and is exchanged
at the call: its copies of the variables, its index, its end of a queue. Replicas talk
through TensorFlow queues only (:mod:`popple.engine.tensorflow.collectives`): their
kernels wait without holding a thread, so all calls advance together, a failing one
cancels the others, and no device has to be set up before TensorFlow starts.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.eager.polymorphic_function import atomic_function

from popple.engine.tensorflow.copies import VARYING, VariableCopies
from popple.engine.tensorflow.processes import ALONE, Processes

__all__ = [
    "ReplicatedProgram",
    "is_varying",
    "num_local_replicas",
    "num_replicas",
    "per_replica",
    "replica_index",
    "replica_offset",
    "tracing",
]

Tensor = Any
"""A symbolic or an eager tensor; TensorFlow's own classes say little to a checker."""

Reset = Callable[[], Sequence[Tensor]]
"""Builds the operations that bring something into its first state."""


@dataclass
class Trace:
    """How many replicas a program is traced for, and whether that matters in it.

    `num_replicas` are those of this process; each of `processes` has as many.
    """

    num_replicas: int = 1
    processes: Processes = ALONE
    depends_on_count: bool = False


class _Tracing(threading.local):
    """The program being traced on this thread."""

    def __init__(self) -> None:
        self.trace = Trace()


_TRACING = _Tracing()


@contextlib.contextmanager
def tracing(num_replicas: int, processes: Processes = ALONE) -> Iterator[Trace]:
    """Everything traced inside belongs to a program of so many replicas per process."""
    outer, _TRACING.trace = _TRACING.trace, Trace(num_replicas, processes)
    try:
        yield _TRACING.trace
    finally:
        _TRACING.trace = outer


def num_replicas() -> int:
    """Replicas of the program being traced, in all processes; 1 outside of one."""
    return num_local_replicas() * _TRACING.trace.processes.count


def num_local_replicas() -> int:
    """Replicas of the program being traced that run in this process."""
    _TRACING.trace.depends_on_count = True
    return _TRACING.trace.num_replicas


def replica_offset() -> int:
    """The number of this process' first replica among all replicas."""
    return _TRACING.trace.processes.index * num_local_replicas()


@dataclass(frozen=True)
class _Varying:
    """What a captured tensor stands for: another value in each replica."""

    values: Sequence[Tensor]
    reset: Reset | None


def per_replica(values: Sequence[Tensor], reset: Reset | None = None) -> Tensor:
    """A tensor that is `values[r]` in replica `r` of this process.

    The values live outside the program: create them under `tf.init_scope`. `reset`
    runs before the replicas start, each time.
    """
    # Kept on the tensor itself, so it lives exactly as long as what captures it.
    setattr(values[0], VARYING, _Varying(values, reset))
    return values[0]


def is_varying(tensor: Tensor) -> bool:
    """Whether this is a tensor that `per_replica` gave."""
    return hasattr(tensor, VARYING)


def replica_index() -> Tensor:
    """The number of the replica that computes this, an int32 scalar."""
    first, count = replica_offset(), num_local_replicas()
    if count == 1:
        return tf.constant(first)
    with tf.init_scope():
        indices = [tf.constant(replica) for replica in range(first, first + count)]
    return tf.identity(per_replica(indices), name="replica_index")


class ReplicatedProgram:
    """A traced function and the means to run it as several replicas.

    `function` is TensorFlow's compiled form, `captures` the outer tensors it takes
    after its own inputs, in order.
    """

    def __init__(
        self,
        function: atomic_function.AtomicFunction,
        captures: Sequence[Tensor],
        num_replicas: int,
    ) -> None:
        self._function = function
        self._captures = list(captures)
        self._num_replicas = num_replicas
        self._copies = VariableCopies(function.graph, captures, num_replicas)
        self._eager: Callable[..., Sequence[Tensor]] | None = None

    def call(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run all replicas; what replica 0 returned, flat."""
        run = self._build if not tf.executing_eagerly() else self._wrapped(inputs)
        outputs = run(*inputs)
        return list(outputs)[: len(self._function.graph.outputs)]

    def _wrapped(self, inputs: Sequence[Tensor]) -> Callable[..., Sequence[Tensor]]:
        """The calls of all replicas as one function, built at the first run."""
        if self._eager is None:
            specs = [tf.TensorSpec.from_tensor(tensor) for tensor in inputs]
            # Without TensorFlow's automatic control dependencies, which would make
            # each replica wait for the one before it.
            self._eager = tf.compat.v1.wrap_function(self._build, specs)
        return self._eager

    def _build(self, *inputs: Tensor) -> list[Tensor]:
        """The calls of all replicas in the graph being built.

        The last output counts for nothing: it is there when the program has none.
        """
        start = [*self._resets(), *self._copies.refresh()]
        with tf.control_dependencies(start):
            calls = [
                self._call_replica(replica, inputs)
                for replica in range(self._num_replicas)
            ]
        with tf.control_dependencies(calls):
            end = self._copies.remember()
        with tf.control_dependencies([*calls, *end]):
            return [tf.identity(output) for output in (*calls[0].outputs, 0)]

    def _resets(self) -> list[Tensor]:
        varyings = (getattr(capture, VARYING, None) for capture in self._captures)
        resets = {id(v.reset): v.reset for v in varyings if v is not None and v.reset}
        return [operation for reset in resets.values() for operation in reset()]

    def _call_replica(self, replica: int, inputs: Sequence[Tensor]) -> Any:
        captures = [self._capture_of(replica, capture) for capture in self._captures]
        function = self._function
        tf.compat.v1.get_default_graph()._add_function_recursive(function)
        return atomic_function.partitioned_call_op(
            name=function.name,
            args=[*inputs, *captures],
            is_stateful=True,
            tout=[output.dtype.as_datatype_enum for output in function.graph.outputs],
        )

    def _capture_of(self, replica: int, capture: Tensor) -> Tensor:
        varying: _Varying | None = getattr(capture, VARYING, None)
        if varying is not None:
            return varying.values[replica]
        return self._copies.of(replica, capture)
