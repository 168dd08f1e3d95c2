"""Updates of variables in half precision, in programs for the device.

TensorFlow's operators that update a variable in one go compute in half precision and
make infinities of what is too large: a square of 300 spoils Adam's second moment for
good. On the device an update is arithmetic like any other. So the new values are
computed in single precision, on copies that live for one step, rounded once and
written. For the cost model, to which all that is none, the operands are marked with the
name of the operator.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import op_def_registry
from tensorflow.python.ops import gen_training_ops

from popple.marks import HALF_UPDATE

from . import as_on_device, float16

__all__ = ["patch"]

Values = Mapping[str, Any]


def _adapt(at: Values) -> list[Any]:
    """Adam."""
    first, second = (1 - at[f"beta{n}_power"] for n in (1, 2))
    rate = at["lr"] * tf.sqrt(second) / first
    m = at["m"] * at["beta1"] + at["grad"] * (1 - at["beta1"])
    # A square of 300 is too large: the machine has the largest number there.
    square = _widened(_rounded(tf.square(at["grad"])))
    v = at["v"] * at["beta2"] + square * (1 - at["beta2"])
    moment = m * at["beta1"] + at["grad"] * (1 - at["beta1"])
    step = (moment if at.get("use_nesterov") else m) / (tf.sqrt(v) + at["epsilon"])
    return [at["var"] - rate * step, m, v]


# Operator -> its variables.
_UPDATES: Mapping[str, Sequence[str]] = {
    "adam": ("var", "m", "v"),
    "gradient_descent": ("var",),
    "keras_momentum": ("var", "accum"),
    "momentum": ("var", "accum"),
}
# Those whose intermediate results the machine cuts off, and what variables are then.
_STEPWISE: Mapping[str, Callable[[Values], list[Any]]] = {"adam": _adapt}


def patch() -> None:
    """Let these operators do so, under all names that TensorFlow has for them."""
    faces = ("_api.v2", "_api.v2.compat.v1", "_api.v2.compat.v2")
    raw_ops = [importlib.import_module(f"tensorflow.{face}.raw_ops") for face in faces]
    for name, variables in _UPDATES.items():
        python = f"resource_apply_{name}"
        raw = "".join(word.capitalize() for word in python.split("_"))
        names = [(gen_training_ops, python), *((owner, raw) for owner in raw_ops)]
        for owner, attribute in names:
            stock = getattr(owner, attribute)
            compute = _STEPWISE.get(name) or _at_once(stock, variables)
            setattr(owner, attribute, _in_float(raw, stock, variables, compute))


def _widened(value: Any) -> Any:
    """A number of any kind, in single precision if it is in half."""
    is_half = getattr(value, "dtype", None) == tf.float16
    return tf.cast(value, tf.float32) if is_half else value


def _rounded(value: tf.Tensor) -> tf.Tensor:
    """In half precision; what is too large is the largest number, or no number."""
    if not as_on_device.configured().nan_on_overflow:
        # One pass over memory, where `tf.clip_by_value` makes two.
        value = tf.raw_ops.ClipByValue(
            t=value, clip_value_min=-tf.float16.max, clip_value_max=tf.float16.max
        )
    return tf.cast(value, tf.float16)


def _in_float(
    operator: str,
    stock: Callable[..., Any],
    variables: Sequence[str],
    compute: Callable[[Values], list[Any]],
) -> Callable[..., Any]:
    names = tuple(inspect.signature(stock).parameters)

    @functools.wraps(stock)
    def update(*args: Any, **kwargs: Any) -> tf.Operation:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        gradient = given.get("grad", given.get("delta"))
        is_half = getattr(gradient, "dtype", None) == tf.float16
        if not is_half or not as_on_device.is_computing() or tf.executing_eagerly():
            return stock(*args, **kwargs)
        modelled = _operands(operator, given)
        return _update(modelled, given, variables, compute)

    return update


def _at_once(
    stock: Callable[..., Any], variables: Sequence[str]
) -> Callable[[Values], list[Any]]:
    """What the operator itself makes of copies in single precision: one pass."""

    def compute(at: Values) -> list[Any]:
        copies = {name: _copy(at[name]) for name in variables}
        filled = [filling for _, filling in copies.values()]
        handles = {name: handle for name, (handle, _) in copies.items()}
        with tf.control_dependencies(filled):
            done = stock(**{**at, **handles})
        with tf.control_dependencies([done]):
            return [_taken(handle, at[name]) for name, handle in handles.items()]

    return compute


def _copy(value: tf.Tensor) -> tuple[tf.Tensor, tf.Operation]:
    """The handle of a variable that is new in every run, and what fills it."""
    handle = tf.raw_ops.VarHandleOp(
        dtype=value.dtype, shape=value.shape, shared_name=context.anonymous_name()
    )
    return handle, tf.raw_ops.AssignVariableOp(resource=handle, value=value)


def _taken(handle: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
    """What such a variable holds; it is gone then."""
    value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=before.dtype)
    with tf.control_dependencies([value]):
        gone = tf.raw_ops.DestroyResourceOp(resource=handle)
    with tf.control_dependencies([gone]):
        return tf.ensure_shape(tf.identity(value), before.shape)


def _operands(operator: str, given: Values) -> tf.Operation:
    """What an operator would read, for the cost model."""
    values = [given[each.name] for each in op_def_registry.get(operator).input_arg]
    tensors = [x if tf.is_tensor(x) else tf.constant(x, tf.float16) for x in values]
    graph: Any = tf.compat.v1.get_default_graph()
    mark = {HALF_UPDATE: attr_value_pb2.AttrValue(s=operator.encode())}
    with graph._attr_scope(mark):
        return tf.raw_ops.IdentityN(input=tensors, name=operator)[0].op


def _update(
    modelled: tf.Operation,
    given: Values,
    variables: Sequence[str],
    compute: Callable[[Values], list[Any]],
) -> tf.Operation:
    with float16.free_of_cost():
        held = {
            name: tf.raw_ops.ReadVariableOp(resource=given[name], dtype=tf.float16)
            for name in variables
        }
        at = {name: _widened(value) for name, value in {**given, **held}.items()}
        values = [_rounded(value) for value in compute(at)]
        # All are computed before the first is written.
        with tf.control_dependencies([modelled, *values]):
            written = [
                tf.raw_ops.AssignVariableOp(resource=given[name], value=value)
                for name, value in zip(variables, values, strict=True)
            ]
    return tf.group(*written)
