"""Traces a function into an executable: its feeds become queues of whoever runs it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.framework import func_graph, ops

from .._programs import compilation
from .executable_files import PROGRAM, Executable, Feed, Value


class Recorder:
    """The feeds of the function that is being traced, in place of the real ones."""

    def __init__(self) -> None:
        self.graph: Any = None
        self.operations: list[Any] = []
        self._infeeds: dict[str, tuple[Feed, Any]] = {}
        self._outfeeds: dict[str, tuple[Feed, Any]] = {}

    @property
    def infeeds(self) -> list[Feed]:
        """What the function reads."""
        return [feed for feed, _ in self._infeeds.values()]

    @property
    def outfeeds(self) -> list[Feed]:
        """What the function writes."""
        return [feed for feed, _ in self._outfeeds.values()]

    def dequeue(
        self, name: str, types: Sequence[Any], shapes: Sequence[Any]
    ) -> list[tf.Tensor]:
        """The next element of the infeed `name`."""
        _, handle = self._feed(self._infeeds, "infeed", name, types, shapes)
        found = tf.raw_ops.QueueDequeueV2(handle=handle, component_types=list(types))
        for tensor, shape in zip(found, shapes, strict=True):
            tensor.set_shape(shape)
        return found

    def enqueue(self, name: str, tensors: Sequence[Any]) -> tf.Operation:
        """Put an element into the outfeed `name`."""
        types = [tensor.dtype for tensor in tensors]
        shapes = [tensor.shape for tensor in tensors]
        _, handle = self._feed(self._outfeeds, "outfeed", name, types, shapes)
        return tf.raw_ops.QueueEnqueueV2(handle=handle, components=list(tensors))

    def _feed(
        self,
        known: dict[str, tuple[Feed, Any]],
        kind: str,
        name: str,
        types: Sequence[Any],
        shapes: Sequence[Any],
    ) -> tuple[Feed, Any]:
        if name not in known:
            # Outside of all loops and functions, which capture it.
            with self.graph.as_default(), tf.control_dependencies(None):
                handle = tf.compat.v1.placeholder(
                    tf.resource, [], f"{kind}_{len(known)}"
                )
            sizes: list[Any] = [tf.TensorShape(shape).as_list() for shape in shapes]
            names = [tf.as_dtype(dtype).name for dtype in types]
            feed = Feed(handle.op.name, names, sizes)
            known[name] = (feed, handle)
        return known[name]


_RECORDER: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


def recorder() -> Recorder | None:
    """The recorder, while a function is traced into an executable."""
    return _RECORDER.get()


@contextlib.contextmanager
def _recording() -> Iterator[Recorder]:
    made = Recorder()
    token = _RECORDER.set(made)
    try:
        yield made
    finally:
        _RECORDER.reset(token)


def trace(
    function: Callable[..., Any], inputs: Sequence[Any], freeze: bool, name: str
) -> tuple[Callable[[Sequence[Any]], Executable], list[Any]]:
    """Trace `function(*inputs)`.

    Returns a function that makes the executable, and the tensors whose values it is to
    be called with: those of the inputs and of all that the function refers to.
    """
    with _recording() as found, compilation.program_scope():

        def traced(*given: Any) -> Any:
            found.graph = ops.get_default_graph()
            outputs = function(*given)
            if isinstance(outputs, tf.Operation):
                found.operations.append(outputs)
                return None
            return outputs

        graph = func_graph.func_graph_from_py_func(name, traced, tuple(inputs), {})
    _close(graph, found)
    values = list(tf.nest.flatten(list(inputs)))
    starts: list[Value] = []
    for placeholder, value in zip(graph.inputs, values, strict=False):
        number = -1 if _is_constant(value) else _num_inputs(starts)
        starts.append(_start(placeholder, placeholder.op.name, number))
    variables = {id(variable.handle): variable for variable in graph.variables}
    for outside, inside in graph.captures:
        if outside.dtype != tf.resource:
            starts.append(_start(inside, inside.op.name))
            values.append(outside)
            continue
        variable = _known(variables, outside)
        title = variable.name.partition(":")[0]
        # Frozen variables are stored with the program instead of asked for.
        number = -1 if freeze else _num_inputs(starts)
        starts.append(_start(inside, f"XLA_Args/{title}", number, variable))
        values.append(variable.read_value())
    outputs = [_start(tensor, f"output_{i}") for i, tensor in enumerate(graph.outputs)]

    def made(arrays: Sequence[Any]) -> Executable:
        stored = {
            start.placeholder: array
            for start, array in zip(starts, arrays, strict=True)
            if start.argument < 0
        }
        program = graph.as_graph_def(add_shapes=False).SerializeToString()
        return Executable(
            program, found.infeeds, found.outfeeds, starts, outputs, stored
        )

    return made, values


def _close(graph: tf.Graph, found: Recorder) -> None:
    """Add the operation that runs everything."""
    with graph.as_default(), tf.control_dependencies(None):
        tf.group(
            *(tensor.op for tensor in graph.outputs),
            *graph.control_outputs,
            *found.operations,
            name=PROGRAM,
        )


def _is_constant(tensor: tf.Tensor) -> bool:
    """Whether the value of a tensor is known when the function is traced."""
    return hasattr(tensor, "numpy") or tensor.op.type == "Const"


def _num_inputs(starts: Sequence[Value]) -> int:
    return sum(start.argument >= 0 for start in starts)


def _start(
    placeholder: Any, name: str, argument: int = -1, variable: tf.Variable | None = None
) -> Value:
    described = placeholder if variable is None else variable
    return Value(
        placeholder.op.name,
        name,
        described.dtype.base_dtype.name,
        described.shape.as_list(),
        variable is not None,
        argument,
    )


def _known(variables: dict[int, Any], handle: tf.Tensor) -> tf.Variable:
    if id(handle) not in variables:
        raise NotImplementedError(
            f"The function refers to {handle}, which is neither a variable nor a feed"
            " and cannot be part of an executable. Pass its values as `inputs`."
        )
    return variables[id(handle)]
