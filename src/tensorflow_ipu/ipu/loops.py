"""Loops that stay on the device: the host meets the program once per loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.compiler.xla import xla
from tensorflow.python.ops import while_loop as tf_while_loop
from tensorflow.python.ops import while_v2

from tensorflow_ipu._types import Infeed, Returned, TensorLike, Tensors

from ._programs import loop_counters
from ._programs.reads_first import reads_first


def repeat(
    n: int,
    body: Callable[..., Any],
    inputs: Tensors | None = None,
    infeed_queue: Infeed | None = None,
    use_while_v1: bool = True,
) -> Returned:
    """Run `body` `n` times; what it returns is what it is given next time."""
    arity = len(_as_list(inputs))
    _check_arguments("body", body, arity, inputs, infeed_queue)
    return while_loop(
        lambda *_: True, body, inputs, infeed_queue, n, use_while_v1=use_while_v1
    )


def while_loop(
    condition: Callable[..., Any],
    body: Callable[..., Any],
    inputs: Tensors | None = None,
    infeed_queue: Infeed | None = None,
    maximum_iterations: Any = None,
    use_while_v1: bool = True,
) -> Returned:
    """Run `body` as long as `condition` holds for what it returned.

    The body is given the loop's values, then an element of the infeed. It returns the
    next values, then operations that must run. The result is the last values: one
    tensor, a list, or an operation where the loop has none.
    """
    values = [_as_value(value) for value in _as_list(inputs)]
    _check_arguments("body", body, len(values), values, infeed_queue)
    _check_arguments("condition", condition, len(values), values, None, infeed_queue)

    def one_step(counter: Any, *state: Any) -> list[tf.Tensor] | tf.Tensor:
        args, kwargs = _body_arguments(infeed_queue._dequeue() if infeed_queue else [])
        # What accumulates gradients in the body needs to know the iteration.
        with loop_counters.counting(counter, maximum_iterations), reads_first():
            outputs = body(*state, *args, **kwargs)
        return _next_state(counter, outputs, values)

    loop = tf_while_loop.while_loop if use_while_v1 else while_v2.while_loop
    outputs = loop(
        lambda _, *state: condition(*state),
        one_step,
        [tf.constant(0), *values],
        maximum_iterations=maximum_iterations,
        name="",
        # Steps must not overtake each other: they share feeds and variables.
        parallel_iterations=1,
    )
    if infeed_queue is not None and not infeed_queue.dequeued:
        raise ValueError("The infeed queue has not been dequeued by the loop.")
    counter, *results = _as_list(outputs)
    if len(results) > 1:
        return results
    return results[0] if results else counter.op


def _next_state(
    counter: Any, outputs: Returned, values: Sequence[Any]
) -> list[tf.Tensor] | tf.Tensor:
    """The counter and what the body returned, checked, tied to its operations."""
    returned = [
        output if isinstance(output, tf.Operation) else _as_value(output)
        for output in _as_list(outputs)
    ]
    operations = [output for output in returned if isinstance(output, tf.Operation)]
    tensors = returned[: len(returned) - len(operations)]
    if any(isinstance(output, tf.Operation) for output in tensors):
        raise ValueError(
            "The body of a loop returns its tensors first and operations after them;"
            " here an operation comes before a tensor."
        )
    before, after = [[tensor.dtype for tensor in group] for group in (values, tensors)]
    if before != after:
        raise TypeError(
            "Mismatch between input types and output types for loop body: it is given"
            f" {before} and returns {after}."
        )
    with tf.control_dependencies(operations):
        state = [
            tensor if isinstance(tensor, tf.TensorArray) else tf.identity(tensor)
            for tensor in (counter + 1, *tensors)
        ]
    # TensorFlow's loops want the only value of a loop without a list around it.
    return state if tensors else state[0]


def _check_arguments(
    role: str,
    function: Callable[..., Any],
    arity: int,
    inputs: Tensors,
    infeed_queue: Infeed,
    infeed_of_loop: Any = None,
) -> None:
    """Refuse a function that cannot take what the loop will give it."""
    complaint = xla.check_function_argument_count(function, arity, infeed_queue)
    if complaint is None:
        return
    fed = ""
    if infeed_queue is not None:
        number = infeed_queue.number_of_tuple_elements
        fed = f" and {number} additional inputs from infeed"
    note = ""
    if infeed_of_loop is not None:
        note = " The condition is not given what the infeed has."
    raise TypeError(
        f"Supplied loop {role} function cannot be called with the specified inputs."
        f" You specified {arity} inputs: {inputs}{fed}, but the loop {role} needs"
        f" {complaint}.{note}"
    )


def _as_value(value: TensorLike | tf.TensorArray) -> tf.Tensor | tf.TensorArray:
    return value if isinstance(value, tf.TensorArray) else tf.convert_to_tensor(value)


def _as_list(values: Any) -> list[Any]:
    if values is None:
        return []
    return list(values) if isinstance(values, list | tuple) else [values]


def _body_arguments(element: Any) -> tuple[list[Any], Mapping[str, Any]]:
    """How an element of an infeed is passed on: one dictionary becomes keywords."""
    elements = _as_list(element)
    if len(elements) == 1 and isinstance(elements[0], dict):
        (only,) = elements
        if all(isinstance(key, str) for key in only):
            return [], only
    return elements, {}
