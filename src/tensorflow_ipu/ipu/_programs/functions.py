"""Runs a `tf.function` as an IPU program, with one replica or several.

A program with one replica is called as it is: stock TensorFlow runs it. A program with
several is traced once and run by `popple.engine.tensorflow.ReplicatedProgram`. Programs
in the graphs of TensorFlow 1 are the subject of `graphs`.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.eager.polymorphic_function import (
    function_type_utils,
    polymorphic_function,
    tracing_compilation,
)

from popple.engine.tensorflow import Processes, ReplicatedProgram
from tensorflow_ipu._translate import Arithmetic
from tensorflow_ipu._types import Function, Returned

from .. import _device, _errors, _modelling
from .._arithmetic import as_on_device
from .._modelling import runs
from . import assertions, static_shapes
from .compilation import (
    AnotherCountError,
    assuming,
    declared_shards,
    operations_of,
    processes_of,
    program_scope,
    replicas_for,
    replicas_of,
    runs_alone,
)

# What is part of a trace beside the function: replicas here, processes that run it
# together, and how numbers are computed.
_Conditions = tuple[int, Processes, Arithmetic]
_PLAIN = Arithmetic()


class _Traces:
    """The functions that programs were traced from, where not from the user's own.

    One for each number of replicas and arithmetic: they are part of what was traced.
    """

    def __init__(self) -> None:
        self._functions: weakref.WeakKeyDictionary[Any, dict[_Conditions, Any]] = (
            weakref.WeakKeyDictionary()
        )
        self._programs: weakref.WeakKeyDictionary[Any, ReplicatedProgram] = (
            weakref.WeakKeyDictionary()
        )
        self._asserting: weakref.WeakKeyDictionary[Any, bool] = (
            weakref.WeakKeyDictionary()
        )

    def function(
        self, function: Function, count: int, ordinal: int
    ) -> polymorphic_function.Function:
        """`function` as one that was never traced under other conditions."""
        conditions = (count, processes_of(ordinal), as_on_device.configured())
        known = self._functions.setdefault(function, {})
        if conditions not in known:
            python_function = getattr(function, "python_function", function)
            known[conditions] = tf.function(python_function)
        return known[conditions]

    def asserts(self, concrete: Any) -> bool:
        """Whether a traced function, checked when it is new, has assertions."""
        if concrete not in self._asserting:
            _check_types(concrete)
            static_shapes.check(operations_of(concrete.graph))
            self._asserting[concrete] = assertions.has_assertions(
                operations_of(concrete.graph)
            )
        return self._asserting[concrete]

    def program(self, concrete: Any, count: int) -> ReplicatedProgram:
        """The runnable form of a traced function."""
        if concrete not in self._programs:
            self._programs[concrete] = ReplicatedProgram(
                concrete.inference_fn, concrete.captured_inputs, count
            )
        return self._programs[concrete]


_TRACES = _Traces()


def run_function(
    function: Function, args: Sequence[Any], kwargs: dict[str, Any], ordinal: int
) -> Returned:
    """Call a `tf.function` as an IPU program on the device `ordinal`."""
    _device.attach(ordinal)
    # A first guess: most programs are not sharded, and one that is says so when traced.
    count = replicas_for(1, ordinal)
    with program_scope(), _errors.in_plain_words():
        if runs_alone(count, ordinal):
            return _run_alone(function, args, kwargs, ordinal)
        return _run_replicated(function, args, kwargs, ordinal, count)


def prepare(
    function: Function, args: Sequence[Any], ordinal: int, num_shards: int
) -> Callable[[Sequence[Any]], Any]:
    """Trace a `tf.function` for these arguments; what runs it on such tensors.

    For programs that run often: their arguments are looked at only once. `num_shards`
    are the IPUs that one replica spans.
    """
    program, run = _prepared(function, args, ordinal, num_shards)

    def in_plain_words(tensors: Sequence[Any]) -> Returned:
        with _errors.in_plain_words(), runs.running(program):
            return run(tensors)

    return in_plain_words


def _prepared(
    function: Function, args: Sequence[Any], ordinal: int, num_shards: int
) -> tuple[_modelling.TracedProgram, Callable[[Sequence[Any]], Any]]:
    _device.attach(ordinal)
    count = replicas_for(num_shards, ordinal)
    alone = runs_alone(count, ordinal)
    if as_on_device.configured() != _PLAIN or not alone:
        function = _TRACES.function(function, count, ordinal)
    with program_scope(), assuming(count, ordinal):
        concrete, _ = _traced(function, args, {})
    asserts = _TRACES.asserts(concrete)
    name, graph = concrete.graph.name, concrete.graph
    total = count * processes_of(ordinal).count
    traced = _modelling.record(name, graph, num_replicas=total, ordinal=ordinal)
    if not alone:
        program = _TRACES.program(concrete, count)
        pack = concrete.function_type.pack_output
        return traced, lambda tensors: pack(
            _run_asserting(
                asserts, graph.variables, functools.partial(program.call, tensors)
            )
        )

    def run(tensors: Sequence[Any]) -> Returned:
        return concrete._call_flat(list(tensors), concrete.captured_inputs)

    return traced, lambda tensors: _run_asserting(
        asserts, graph.variables, functools.partial(run, tensors)
    )


def _run_asserting(
    asserts: bool, variables: Sequence[tf.Variable], run: Callable[[], Any]
) -> Any:
    """Run a program; one that asserts something leaves no trace where it fails."""
    return assertions.run_function(run, variables) if asserts else run()


def _run_replicated(
    function: Function,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    ordinal: int,
    count: int,
) -> Returned:
    """Trace for `count` replicas and run; anew if the trace shows another number."""
    traced = _TRACES.function(function, count, ordinal)
    try:
        with assuming(count, ordinal):
            concrete, inputs = _traced(traced, args, kwargs)
    except AnotherCountError:
        needed = replicas_for(declared_shards(), ordinal)
        return _run_replicated(function, args, kwargs, ordinal, needed)
    _check_types(concrete)
    # `ipu_shard` scopes are only seen on the traced operations.
    needed = replicas_of(concrete.graph, ordinal)
    if needed != count:
        return _run_replicated(function, args, kwargs, ordinal, needed)
    name, graph = concrete.graph.name, concrete.graph
    total = count * processes_of(ordinal).count
    program = _modelling.record(name, graph, num_replicas=total, ordinal=ordinal)
    replicated = _TRACES.program(concrete, count)
    asserts = _TRACES.asserts(concrete) and tf.executing_eagerly()
    with runs.running(program):
        outputs = _run_asserting(
            asserts, graph.variables, lambda: replicated.call(inputs)
        )
    return concrete.function_type.pack_output(outputs)


def _traced(
    function: polymorphic_function.Function,
    args: Sequence[object],
    kwargs: dict[str, object],
) -> tuple[Any, list[Any]]:
    """The traced function for these arguments, and the tensors in them."""
    if function._variable_creation_config is None:
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
    function: Function, args: Sequence[Any], kwargs: dict[str, Any], ordinal: int
) -> Returned:
    """Call a function that stock TensorFlow runs as it is."""
    if not isinstance(function, polymorphic_function.Function):
        return function(*args, **kwargs)
    if as_on_device.configured() != _PLAIN:
        function = _TRACES.function(function, 1, ordinal)
    concrete = function.get_concrete_function(*args, **kwargs)
    graph = concrete.graph
    program = _modelling.record(graph.name, graph, ordinal=ordinal)
    asserts = _TRACES.asserts(concrete)
    # Part of a larger graph, whose session does what is done below.
    if not tf.executing_eagerly():
        return function(*args, **kwargs)
    with runs.running(program):
        return _run_asserting(
            asserts, graph.variables, lambda: function(*args, **kwargs)
        )


def _check_types(concrete: Any) -> None:
    """Refuse double precision, which the device lacks."""
    for role, tensors in (("input", concrete.inputs), ("output", concrete.outputs)):
        if any(tensor.dtype == tf.float64 for tensor in tensors):
            raise TypeError(
                f"Unsupported data type for {role}: float64. Cast it to float32."
            )
