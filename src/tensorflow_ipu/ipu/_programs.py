"""IPU programs: what the original compiles for the device, here traced and run.

A program with one replica is built where the user builds it, by stock TensorFlow. A
program with several is traced once and run by `popple.engine.tensorflow.Program`. How
many there are follows from the device and from the IPUs that one replica spans, which
only the traced operations tell. Programs in the graphs of TensorFlow 1 are the subject
of `_graph_programs`.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import (
    function_type_utils,
    polymorphic_function,
    tracing_compilation,
)

from popple.engine.tensorflow import Program, Trace, num_replicas, tracing

from . import _asserts, _device, _errors, _halves, _modelling, _runs, sharding


class _Compiling(threading.local):
    """Whether this thread is inside a program, and what it has said of its IPUs."""

    depth: int = 0
    num_shards: int = 1
    ordinal: int | None = None


_COMPILING = _Compiling()


class AnotherCountError(Exception):
    """A program says, while it is traced, that it has another number of replicas."""


_DISCARDED = "_popple_discarded"


def discard(built: Any) -> None:
    """Say that a graph, or an operation, is of a program that is built again."""
    setattr(built, _DISCARDED, True)


def is_discarded(op: Any) -> bool:
    """Whether an operation belongs to a program that was built again since."""
    if getattr(op, _DISCARDED, False):
        return True
    graph = op.graph
    while graph is not None:
        if getattr(graph, _DISCARDED, False):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False


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
        with _halves.saturating():
            yield
    finally:
        _COMPILING.depth -= 1
        if _COMPILING.depth == 0:
            _COMPILING.num_shards = outer


@contextlib.contextmanager
def assuming(count: int, ordinal: int) -> Iterator[Trace]:
    """Trace for `count` replicas on a device.

    Raises AnotherCountError when the program declares shards that leave another number.
    """
    outer, _COMPILING.ordinal = _COMPILING.ordinal, ordinal
    try:
        with tracing(count) as trace:
            yield trace
    finally:
        _COMPILING.ordinal = outer


def declare_shards(num_ipus: int) -> None:
    """Say that the program being built spans so many IPUs, as a pipeline does."""
    _COMPILING.num_shards = max(_COMPILING.num_shards, num_ipus)
    if _COMPILING.ordinal is None:
        return
    if replicas_for(declared_shards(), _COMPILING.ordinal) != num_replicas():
        raise AnotherCountError


def declared_shards() -> int:
    """How many IPUs the program being built has said to span."""
    return _COMPILING.num_shards


def replicas_for(num_shards: int, ordinal: int) -> int:
    """How many replicas of `num_shards` IPUs each the device holds; at least one."""
    per_replica = 1 << (max(num_shards, 1) - 1).bit_length()
    return max(_device.num_ipus(ordinal) // per_replica, 1)


def shards_of(operations: Iterable[Any]) -> int:
    """The IPUs that operations are spread over."""
    shards = [sharding.get_sharding(op) or [0] for op in operations]
    return max((max(shard) for shard in shards), default=0) + 1


def with_called(operations: Iterable[Any]) -> Iterator[Any]:
    """Operations and those of the functions that they call."""
    for op in operations:
        yield op
        for attribute in op.node_def.attr.values():
            function = op.graph._functions.get(attribute.func.name)
            if function is not None:
                yield from with_called(body_of(function))


def operations_of(graph: Any) -> Iterator[Any]:
    """All operations of a graph and of the functions that it calls."""
    yield from graph.get_operations()
    for function in getattr(graph, "_functions", {}).values():
        yield from body_of(function)


def body_of(function: Any) -> Sequence[Any]:
    """The operations of a function.

    Functions as TensorFlow 1 has them keep no graph; inside TensorFlow there are a few
    still, all of arithmetic.
    """
    graph = getattr(function, "graph", None)
    return () if graph is None else graph.get_operations()


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
        self._asserting: weakref.WeakKeyDictionary[Any, bool] = (
            weakref.WeakKeyDictionary()
        )

    def function(self, function: Any, count: int) -> Any:
        """`function` as one that was never traced for another number of replicas."""
        known = self._functions.setdefault(function, {})
        if count not in known:
            python_function = getattr(function, "python_function", function)
            known[count] = tf.function(python_function)
        return known[count]

    def asserts(self, concrete: Any) -> bool:
        """Whether a traced function, checked when it is new, has assertions."""
        if concrete not in self._asserting:
            _check_types(concrete)
            self._asserting[concrete] = _asserts.has_assertions(
                operations_of(concrete.graph)
            )
        return self._asserting[concrete]

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
    with program_scope(), _errors.in_plain_words():
        if count == 1:
            return _run_alone(function, args, kwargs, ordinal)
        return _run_replicated(function, args, kwargs, ordinal, count)


def prepare(
    function: Any, args: Sequence[Any], ordinal: int, num_shards: int
) -> Callable[[Sequence[Any]], Any]:
    """Trace a `tf.function` for these arguments; what runs it on such tensors.

    For programs that run often: their arguments are looked at only once. `num_shards`
    are the IPUs that one replica spans.
    """
    program, run = _prepared(function, args, ordinal, num_shards)

    def in_plain_words(tensors: Sequence[Any]) -> Any:
        with _errors.in_plain_words(), _runs.running(program):
            return run(tensors)

    return in_plain_words


def _prepared(
    function: Any, args: Sequence[Any], ordinal: int, num_shards: int
) -> tuple[_modelling.TracedProgram, Callable[[Sequence[Any]], Any]]:
    _device.attach(ordinal)
    count = replicas_for(num_shards, ordinal)
    with program_scope(), assuming(count, ordinal):
        concrete, _ = _traced(function, args, {})
    asserts = _TRACES.asserts(concrete)
    name, graph = concrete.graph.name, concrete.graph
    traced = _modelling.record(name, graph, num_replicas=count, ordinal=ordinal)
    if count > 1:
        program = _TRACES.program(concrete, count)
        pack = concrete.function_type.pack_output
        return traced, lambda tensors: pack(program.call(tensors))

    def run(tensors: Sequence[Any]) -> Any:
        return concrete._call_flat(list(tensors), concrete.captured_inputs)

    if not asserts:
        return traced, run
    return traced, lambda tensors: _asserts.run_function(
        functools.partial(run, tensors), graph.variables
    )


def _run_replicated(
    function: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    ordinal: int,
    count: int,
) -> Any:
    """Trace for `count` replicas and run; anew if the trace shows another number."""
    traced = _TRACES.function(function, count)
    try:
        with assuming(count, ordinal):
            concrete, inputs = _traced(traced, args, kwargs)
    except AnotherCountError:
        needed = replicas_for(declared_shards(), ordinal)
        return _run_replicated(function, args, kwargs, ordinal, needed)
    _check_types(concrete)
    needed = replicas_of(concrete.graph, ordinal)
    if needed != count:
        return _run_replicated(function, args, kwargs, ordinal, needed)
    name, graph = concrete.graph.name, concrete.graph
    program = _modelling.record(name, graph, num_replicas=count, ordinal=ordinal)
    with _runs.running(program):
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


def _run_alone(
    function: Any, args: Sequence[Any], kwargs: dict[str, Any], ordinal: int
) -> Any:
    """Call a function that stock TensorFlow runs as it is."""
    if not isinstance(function, polymorphic_function.Function):
        return function(*args, **kwargs)
    concrete = function.get_concrete_function(*args, **kwargs)
    graph = concrete.graph
    program = _modelling.record(graph.name, graph, ordinal=ordinal)
    asserts = _TRACES.asserts(concrete)
    if not tf.executing_eagerly():
        return function(*args, **kwargs)
    with _runs.running(program):
        if asserts:
            return _asserts.run_function(
                lambda: function(*args, **kwargs), graph.variables
            )
        return function(*args, **kwargs)


def _check_types(concrete: Any) -> None:
    """Refuse double precision, which the device lacks."""
    for role, tensors in (("input", concrete.inputs), ("output", concrete.outputs)):
        if any(tensor.dtype == tf.float64 for tensor in tensors):
            raise TypeError(
                f"Unsupported data type for {role}: float64. Cast it to float32."
            )


def replicas_of(graph: Any, ordinal: int) -> int:
    """How many replicas of the program traced into `graph` the device holds."""
    num_shards = max(shards_of(operations_of(graph)), _COMPILING.num_shards)
    return replicas_for(num_shards, ordinal)
