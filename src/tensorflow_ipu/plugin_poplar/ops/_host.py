"""Operators that call Python when they run: at once, or when a session runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tensorflow.python.eager import context
from tensorflow.python.framework import constant_op, dtypes, ops
from tensorflow.python.ops import script_ops


def texts(make: Callable[[], Sequence[bytes]], name: str | None) -> Any:
    """A list of byte strings, made whenever the operator runs."""

    def call() -> Any:
        made = make()
        array = np.empty(len(made), dtype=object)
        array[:] = made
        return array

    return value(call, dtypes.string, [None], name)


def value(
    make: Callable[[], Any], dtype: dtypes.DType, shape: Sequence[Any], name: str | None
) -> Any:
    """A tensor that Python computes whenever the operator runs."""
    with ops.name_scope(name), ops.device("/device:CPU:0"):
        result: Any = script_ops.numpy_function(make, [], dtype)
    result.set_shape(shape)
    return result


def computed(
    function: Callable[..., Any], tensors: Sequence[Any], types: Sequence[Any]
) -> list[Any]:
    """What a function of arrays gives, now or when the graph runs."""
    if context.executing_eagerly():
        found = function(*(np.asarray(tensor) for tensor in tensors))
        return [
            constant_op.constant(value, kind)
            for value, kind in zip(found, types, strict=True)
        ]
    with ops.device("/device:CPU:0"):
        found = script_ops.numpy_function(function, list(tensors), list(types))
    return list(found) if isinstance(found, list | tuple) else [found]


def action(act: Callable[[], None], name: str | None) -> Any:
    """An operation that calls Python; None in eager mode, where it is called now."""

    def call() -> Any:
        act()
        return np.int32(0)

    with ops.name_scope(name), ops.device("/device:CPU:0"):
        result: Any = script_ops.numpy_function(call, [], dtypes.int32)
    return None if isinstance(result, ops.EagerTensor) else result.op
