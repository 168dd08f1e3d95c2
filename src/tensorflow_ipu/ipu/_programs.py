"""IPU programs: what the original compiles for the device, here traced and run.

A program with one replica is built where the user builds it, by stock TensorFlow. A
program with several is traced once and run by :class:`popple.engine.tensorflow.Program`.
How many there are follows from the device and from the IPUs that one replica spans,
which only the traced operations tell.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import device_util
from tensorflow.python.eager.polymorphic_function import (
    atomic_function,
    function_type_utils,
    tracing_compilation,
)
from tensorflow.python.framework import func_graph, ops
from tensorflow.python.ops import variable_scope

from popple.engine.tensorflow import Program, tracing

from . import _device, sharding


class _Compiling(threading.local):
    """Whether this thread is inside a program, and what it has said of its IPUs."""

    depth: int = 0
    num_shards: int = 1


_COMPILING = _Compiling()


def compiling() -> bool:
    """Whether the operations being made belong to an IPU program."""
    return _COMPILING.depth > 0


@contextlib.contextmanager
def program_scope() -> Iterator[None]:
    """What is built inside is one IPU program."""
    outer = _COMPILING.num_shards
    _COMPILING.depth += 1
    if _COMPILING.depth == 1:
        _COMPILING.num_shards = 1
    try:
        yield
    finally:
        _COMPILING.depth -= 1
        if _COMPILING.depth == 0:
            _COMPILING.num_shards = outer


def declare_shards(num_ipus: int) -> None:
    """Say that the program being built spans so many IPUs, as a pipeline does."""
    _COMPILING.num_shards = max(_COMPILING.num_shards, num_ipus)


def replicas_for(num_shards: int, ordinal: int) -> int:
    """How many replicas of `num_shards` IPUs each the device holds; at least one."""
    per_replica = 1 << (max(num_shards, 1) - 1).bit_length()
    return max(_device.num_ipus(ordinal) // per_replica, 1)


def shards_of(graph: Any) -> int:
    """The IPUs that the operations of a graph are spread over, its functions too."""
    shards = [sharding.get_sharding(op) or [0] for op in operations_of(graph)]
    return max((max(shard) for shard in shards), default=0) + 1


def operations_of(graph: Any) -> Iterator[Any]:
    """All operations of a graph and of the functions that it calls."""
    yield from graph.get_operations()
    for function in getattr(graph, "_functions", {}).values():
        yield from function.graph.get_operations()


class _Traces:
    """The functions that programs of several replicas were traced from.

    One for each number of replicas: it is part of what was traced.
    """

    def __init__(self) -> None:
        self._functions: weakref.WeakKeyDictionary[Any, dict[int, Any]] = (
            weakref.WeakKeyDictionary()
        )
        self._programs: weakref.WeakKeyDictionary[Any, Program] = (
            weakref.WeakKeyDictionary()
        )

    def function(self, function: Any, count: int) -> Any:
        """`function` as one that was never traced for another number of replicas."""
        known = self._functions.setdefault(function, {})
        if count not in known:
            python_function = getattr(function, "python_function", function)
            known[count] = tf.function(python_function)
        return known[count]

    def program(self, concrete: Any, count: int) -> Program:
        """The runnable form of a traced function."""
        if concrete not in self._programs:
            self._programs[concrete] = Program(
                concrete.inference_fn, concrete.captured_inputs, count
            )
        return self._programs[concrete]


_TRACES = _Traces()


def run_function(
    function: Any, args: Sequence[Any], kwargs: dict[str, Any], ordinal: int
) -> Any:
    """Call a `tf.function` as an IPU program on the device `ordinal`."""
    _device.attach(ordinal)
    count = replicas_for(1, ordinal)
    with program_scope():
        if count == 1:
            return function(*args, **kwargs)
        return _run_replicated(function, args, kwargs, ordinal, count)


def _run_replicated(
    function: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    ordinal: int,
    count: int,
) -> Any:
    """Trace for `count` replicas and run; anew if the trace shows another number."""
    traced = _TRACES.function(function, count)
    with tracing(count):
        concrete, inputs = _traced(traced, args, kwargs)
    needed = _replicas_of(concrete.graph, ordinal)
    if needed != count:
        return _run_replicated(function, args, kwargs, ordinal, needed)
    outputs = _TRACES.program(concrete, count).call(inputs)
    return concrete.function_type.pack_output(outputs)


def _traced(function: Any, args: Any, kwargs: Any) -> tuple[Any, list[Any]]:
    """The traced function for these arguments, and the tensors in them."""
    function.get_concrete_function(*args, **kwargs)  # creates variables, if it does
    options = (
        function._no_variable_creation_config or function._variable_creation_config
    )
    bound = function_type_utils.canonicalize_function_inputs(
        args, kwargs, options.polymorphic_type, options.default_values, options.is_pure
    )
    concrete = tracing_compilation.trace_function(bound.args, bound.kwargs, options)
    signature = concrete.function_type
    flat = signature.unpack_inputs(signature.bind(*bound.args, **bound.kwargs))
    return concrete, flat


def _replicas_of(graph: Any, ordinal: int) -> int:
    num_shards = max(shards_of(graph), _COMPILING.num_shards)
    return replicas_for(num_shards, ordinal)


def build(function: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """Build `function(*inputs)` into the current graph as an IPU program."""
    flat = [tf.convert_to_tensor(value) for value in tf.nest.flatten(list(inputs))]
    given = tf.nest.pack_sequence_as(list(inputs), flat)
    ordinal = _device.ordinal_of(device_util.current())
    _device.attach(ordinal)
    count = replicas_for(1, ordinal)
    if count == 1:
        return function(*given)
    return _build_replicated(function, given, ordinal, count)


def _build_replicated(
    function: Callable[..., Any], inputs: Sequence[Any], ordinal: int, count: int
) -> Any:
    """The same for several replicas: a function in the graph, called for each."""
    scope = variable_scope.get_variable_scope()
    operations: list[Any] = []

    def inside(*given: Any) -> Any:
        with variable_scope.variable_scope(scope, auxiliary_name_scope=False):
            outputs = function(*given)
        if isinstance(outputs, tf.Operation):
            operations.append(outputs)
            with tf.control_dependencies([outputs]):
                return tf.constant(0)
        return outputs

    name = ops.get_default_graph().unique_name("ipu_program")
    with tracing(count):
        graph = func_graph.func_graph_from_py_func(
            name, inside, args=tuple(inputs), kwargs={}
        )
    needed = _replicas_of(graph, ordinal)
    if needed != count:
        return _build_replicated(function, inputs, ordinal, needed)
    program = Program(
        atomic_function.from_func_graph(name, graph, {}), graph.external_captures, count
    )
    outputs = program.call(tf.nest.flatten(list(inputs)))
    if operations:
        return outputs[0].op
    return tf.nest.pack_sequence_as(graph.structured_outputs, outputs)
