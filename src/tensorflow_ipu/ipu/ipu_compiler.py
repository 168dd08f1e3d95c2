"""Compile a function of TensorFlow 1 into one IPU program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.compiler.xla import xla
from tensorflow.python.framework import device as tf_device
from tensorflow.python.framework import ops
from tensorflow.python.ops import variable_scope

from tensorflow_ipu._types import Returned

from . import scopes
from ._programs import compilation, graphs, outside_compilation, static_shapes
from ._programs.reads_first import reads_first


def compile(
    computation: Callable[..., Any], inputs: Sequence[Any] | None = None
) -> Returned:
    """Build `computation(*inputs)` as one program for the IPU in scope.

    Returns what it returns: tensors as a list (also a single one) or in their
    structure; an operation where it returns operations or nothing.
    """
    if tf.executing_eagerly():
        return tf.function(lambda: compile(computation, inputs))()
    inputs = [] if inputs is None else inputs
    if not isinstance(inputs, Sequence):
        raise TypeError(f"inputs must be a list, not {type(inputs).__name__}.")
    graph = ops.get_default_graph()
    num_before = len(graph.get_operations())
    known_functions = set(graph._functions)
    with scopes.ipu_jit_scope(0), compilation.program_scope():
        outputs = graphs.build(lambda *given: _computed(computation, given), inputs)
    added = [
        *graph.get_operations()[num_before:],
        *_operations_of_functions(graph, known_functions),
    ]
    _check_placement(added)
    static_shapes.check(added)
    return outputs


def _computed(computation: Callable[..., Any], inputs: Sequence[Any]) -> Returned:
    """Call the function as TensorFlow's compiler does: on copies of its inputs."""
    # Copies on the device: what is fed stays with the host.
    flat = [tf.identity(tensor) for tensor in tf.nest.flatten(list(inputs))]
    given = tf.nest.pack_sequence_as(list(inputs), flat)
    scope = variable_scope.get_variable_scope()
    use_resource = scope.use_resource
    graph = ops.get_default_graph()
    num_before = graph.num_operations()
    # Replicas copy variables by their handles, which reference variables lack.
    scope.set_use_resource(True)
    try:
        with reads_first() as first:
            outputs = computation(*given)
            _check_no_estimator_spec(outputs)
            outputs = tf.nest.map_structure(_read(first), outputs)
    finally:
        scope.set_use_resource(use_resource)
    added = graph.get_operations()[num_before:]
    return _outputs(outputs, outside_compilation.without_results(added))


def _read(first: list[Any]) -> Callable[[Any], Any]:
    """Makes a tensor of a variable: what it was before the program changed it."""

    def read(output: Any) -> Any:
        if not isinstance(output, tf.Variable):
            return output
        value: Any = tf.convert_to_tensor(output)
        if not tf.executing_eagerly():
            first.append(value.op)
        return value

    return read


def _outputs(outputs: Returned, acts: Sequence[Any]) -> Returned:
    """What compile() returns for what the function returned, after some `acts`."""
    if not xla.is_flat(outputs):
        tensors, _ = xla._postprocess_non_flat_outputs(outputs)
        with tf.control_dependencies(acts):
            return tf.nest.pack_sequence_as(outputs, list(map(tf.identity, tensors)))
    tensors, operations = xla._postprocess_flat_outputs(_as_tuple(outputs))
    if not tensors:
        return tf.group(*operations, *acts)
    with tf.control_dependencies([*operations, *acts]):
        return [tf.identity(tensor) for tensor in tensors]


def _as_tuple(outputs: Returned) -> tuple[Any, ...]:
    if outputs is None:
        return ()
    return tuple(outputs) if isinstance(outputs, list | tuple) else (outputs,)


def _operations_of_functions(graph: tf.Graph, known: set[str]) -> list[Any]:
    """Operations of the functions that were added to a graph."""
    added = [f for name, f in graph._functions.items() if name not in known]
    return [op for function in added for op in compilation.body_of(function)]


def _check_placement(added: Sequence[Any]) -> None:
    kinds = {tf_device.DeviceSpec.from_string(op.device).device_type for op in added}
    if "IPU" in kinds or all(op.type == "NoOp" for op in added):
        return
    raise Exception(
        "What was compiled was not placed on an IPU device and would run elsewhere."
        " Call compile() inside `with ipu.scopes.ipu_scope('/device:IPU:0'):`."
    )


def _check_no_estimator_spec(outputs: Returned) -> None:
    # By name: the classes belong to modules that are loaded only where they are used.
    kinds = (kind for value in _nested(outputs) for kind in type(value).__mro__)
    names = {kind.__name__ for kind in kinds}
    if any(name.endswith("EstimatorSpec") for name in names):
        raise ValueError(
            "The computation's output contains an EstimatorSpec or IPUEstimatorSpec."
            " An IPUEstimator compiles its model itself: return the spec from its"
            " `model_fn` and do not call compile()."
        )


def _nested(value: Any) -> Iterator[Any]:
    """A value and everything in it, if it is a list or a tuple."""
    yield value
    if isinstance(value, list | tuple):
        for part in value:
            yield from _nested(part)
