"""Updates of variables in half precision, in programs for the device.

TensorFlow's operators that update a variable in one go compute in half precision and
make infinities of what is too large: a square of 300 spoils Adam's second moment for
good. On the device an update is arithmetic like any other. So the new values are
computed in single precision, rounded once and written. Large variables are updated by
one compiled kernel, which passes over memory once where operators pass a dozen times.
For the cost model, to which all that is none, the operands are marked with the name of
the operator.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow.compat.v2 as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import op_def_registry
from tensorflow.python.ops import gen_training_ops

from popple.marks import HALF_UPDATE

from . import as_on_device, float16
from .compiled import as_one_kernel, is_worth_compiling

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


def _descend(at: Values) -> list[Any]:
    return [at["var"] - at["alpha"] * at["delta"]]


def _gather_speed(at: Values) -> list[Any]:
    """Momentum of optimisers before Keras, whose rate counts afterwards."""
    accum = at["accum"] * at["momentum"] + at["grad"]
    ahead = at["grad"] + accum * at["momentum"]
    step = ahead if at.get("use_nesterov") else accum
    return [at["var"] - at["lr"] * step, accum]


def _gather_speed_of_keras(at: Values) -> list[Any]:
    """Momentum of Keras, whose rate is part of what is gathered."""
    step = at["lr"] * at["grad"]
    accum = at["accum"] * at["momentum"] - step
    ahead = accum * at["momentum"] - step
    return [at["var"] + (ahead if at.get("use_nesterov") else accum), accum]


@dataclass(frozen=True)
class _Update:
    """An operator's variables, and what they are afterwards."""

    variables: Sequence[str]
    compute: Callable[[Values], list[Any]]


_UPDATES: Mapping[str, _Update] = {
    "adam": _Update(("var", "m", "v"), _adapt),
    "gradient_descent": _Update(("var",), _descend),
    "keras_momentum": _Update(("var", "accum"), _gather_speed_of_keras),
    "momentum": _Update(("var", "accum"), _gather_speed),
}


def patch() -> None:
    """Let these operators do so, under all names that TensorFlow has for them."""
    faces = ("_api.v2", "_api.v2.compat.v1", "_api.v2.compat.v2")
    raw_ops = [importlib.import_module(f"tensorflow.{face}.raw_ops") for face in faces]
    for name, rule in _UPDATES.items():
        python = f"resource_apply_{name}"
        raw = "".join(word.capitalize() for word in python.split("_"))
        names = [(gen_training_ops, python), *((owner, raw) for owner in raw_ops)]
        for owner, attribute in names:
            stock = getattr(owner, attribute)
            setattr(owner, attribute, _in_float(raw, stock, rule))


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
    operator: str, stock: Callable[..., Any], rule: _Update
) -> Callable[..., Any]:
    names = tuple(inspect.signature(stock).parameters)

    @functools.wraps(stock)
    def update(*args: Any, **kwargs: Any) -> tf.Operation:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        gradient = given.get("grad", given.get("delta"))
        is_half = getattr(gradient, "dtype", None) == tf.float16
        if not is_half or not as_on_device.is_computing() or tf.executing_eagerly():
            return stock(*args, **kwargs)
        return _update(_operands(operator, given), given, rule)

    return update


def _operands(operator: str, given: Values) -> tf.Operation:
    """What an operator would read, for the cost model."""
    values = [given[each.name] for each in op_def_registry.get(operator).input_arg]
    tensors = [x if tf.is_tensor(x) else tf.constant(x, tf.float16) for x in values]
    graph: Any = tf.compat.v1.get_default_graph()
    mark = {HALF_UPDATE: attr_value_pb2.AttrValue(s=operator.encode())}
    with graph._attr_scope(mark):
        return tf.raw_ops.IdentityN(input=tensors, name=operator)[0].op


def _update(modelled: tf.Operation, given: Values, rule: _Update) -> tf.Operation:
    with float16.free_of_cost():
        held = {
            name: tf.raw_ops.ReadVariableOp(resource=given[name], dtype=tf.float16)
            for name in rule.variables
        }
        values = _new_values(rule, {**given, **held})
        # All are computed before the first is written.
        with tf.control_dependencies([modelled, *values]):
            written = [
                tf.raw_ops.AssignVariableOp(resource=given[name], value=value)
                for name, value in zip(rule.variables, values, strict=True)
            ]
    return tf.group(*written)


def _new_values(rule: _Update, at: Values) -> list[tf.Tensor]:
    """What variables are afterwards, in half precision."""
    variable = at[rule.variables[0]]
    if not as_on_device.is_plain() or not is_worth_compiling(variable):
        return _computed(rule, at)
    # Without their shapes, variables of one size share a kernel.
    flat = {name: _flat(value) for name, value in at.items() if _is_number(value)}
    nesterov = bool(at.get("use_nesterov"))
    values = _compiled(rule, nesterov)(flat)
    return [tf.reshape(value, variable.shape) for value in values]


def _computed(rule: _Update, at: Values) -> list[tf.Tensor]:
    wide = {name: _widened(value) for name, value in at.items()}
    return [_rounded(value) for value in rule.compute(wide)]


@functools.cache
def _compiled(rule: _Update, nesterov: bool) -> Callable[[Values], list[tf.Tensor]]:
    def step(at: Values) -> list[tf.Tensor]:
        return _computed(rule, {**at, "use_nesterov": nesterov})

    return as_one_kernel(step)


def _is_number(value: Any) -> bool:
    """Not a switch or a name."""
    return tf.is_tensor(value) or isinstance(value, float | np.number | np.ndarray)


def _flat(value: Any) -> tf.Tensor:
    """A number or a vector; what is no tensor yet is in single precision."""
    tensor = value if tf.is_tensor(value) else tf.constant(value, tf.float32)
    return tf.reshape(tensor, [-1]) if tensor.shape.rank else tensor
