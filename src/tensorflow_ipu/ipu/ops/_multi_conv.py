"""Convolutions that run at the same time, side by side, and the options they take."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.framework import ops as framework_ops

from popple.engine.tensorflow import side_by_side
from popple.graph import MultiConv, Notes, render_notes
from tensorflow_ipu._types import Tensors

from .. import _errors, sharding

__all__ = ["multi_conv"]

_PLAN_TYPES = ("parallel", "serial")
_OPTIONS: Mapping[str, Callable[[str], Any]] = {
    "planType": _PLAN_TYPES.index,
    "perConvReservedTiles": int,
    "cycleBackOff": float,
}
_CONVOLUTIONS = frozenset(
    {
        "Conv2D",
        "Conv2DBackpropInput",
        "Conv3D",
        "Conv3DBackpropInputV2",
        "DepthwiseConv2dNative",
    }
)


def multi_conv(
    func: Callable[..., Any] | None = None, options: dict[str, str] | None = None
) -> Callable[..., Any]:
    """Marks a function whose convolutions run at the same time, side by side.

    `options` are flags for the planner of these convolutions; they change no value.
    One that there is not, or a convolution of another's result, fails when it runs.
    """

    def decorate(inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def call(*args: Any) -> Tensors:
            if options and not isinstance(options, dict):
                raise TypeError(
                    "The `options` of multi_conv are a `dict` of texts, not "
                    f"{options!r}."
                )
            with tf.name_scope("multi_conv"):
                wrong = _wrong(options or {})
                with tf.control_dependencies([*map(_refuse, wrong)]):
                    tensors = [tf.convert_to_tensor(arg) for arg in args]
                    inputs = [tf.identity(tensor) for tensor in tensors]
                    with _planned({} if wrong else options or {}):
                        return _independent(inner, inputs)

        return call

    return decorate if func is None else decorate(func)


def _planned(options: Mapping[str, str]) -> contextlib.AbstractContextManager[None]:
    """Convolutions built inside are planned as these options say."""
    if options.get("planType") == "serial":
        return contextlib.nullcontext()
    tiles, back_off = options.get("perConvReservedTiles"), options.get("cycleBackOff")
    group = MultiConv(
        f"multi_conv:{framework_ops.uid()}",
        reserved_tiles=None if tiles is None else int(tiles),
        cycle_back_off=None if back_off is None else float(back_off),
    )
    return side_by_side(render_notes(Notes(multi_conv=group)))


def _refuse(message: str) -> tf.Tensor | tf.Operation:
    prefix = "[Poplar][Build graph] invalid_option: "
    return _errors.failing(tf.errors.InvalidArgumentError, prefix + message)


def _wrong(options: Mapping[str, str]) -> list[str]:
    """What is wrong with these options."""
    found: list[str] = []
    for name, value in options.items():
        if name not in _OPTIONS:
            known = ", ".join(_OPTIONS)
            found.append(f"Unrecognised option '{name}'. There are: {known}.")
            continue
        try:
            _OPTIONS[name](value)
        except ValueError:
            one_of = f": not one of {_PLAN_TYPES}" if name == "planType" else ""
            found.append(f"Invalid value '{value}' for option '{name}'{one_of}.")
    return found


def _independent(func: Callable[..., Any], args: Sequence[Any]) -> Tensors:
    """Call a function; what it returns fails if it convolves another's result."""
    if tf.executing_eagerly():
        return func(*args)
    graph = tf.compat.v1.get_default_graph()
    before = len(graph.get_operations())
    outputs = func(*args)
    made = [op for op in graph.get_operations()[before:] if op.type in _CONVOLUTIONS]
    if not _depend(made):
        return outputs
    failed = _errors.failing(
        tf.errors.FailedPreconditionError,
        "A MultiConvolution operation requires all convolutions to be independent of "
        "each other: take the one that convolves another's result out of the function.",
    )
    with tf.control_dependencies([failed]):
        return tf.nest.map_structure(tf.identity, outputs)


def _depend(ops: Sequence[Any]) -> bool:
    """Whether one of these operations needs another."""
    own = set(ops)
    return any(sharding.dependencies([op]) & (own - {op}) for op in ops)
