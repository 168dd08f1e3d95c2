"""Functions whose code exists once on the device, however often they are called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf

from popple.engine.tensorflow import outlined
from tensorflow_ipu._types import Tensors

from ._tensors import as_list

_convert_to_list = as_list
"""The name by which programs of this API's own family reach it."""


def outlined_function(
    func: Callable[..., Any] | None = None,
    unique_sharding: bool = False,
    keep_input_layouts: bool | None = None,
    name: str | None = None,
) -> Callable[..., Any]:
    """Marks a function of tensors whose calls share one piece of code on the device.

    The function takes tensors by position and returns at least one tensor; tensors it
    uses from outside are read as constants. `unique_sharding` and `keep_input_layouts`
    concern the placing of its inputs and change no value.
    """
    scope = name or "function"

    def decorate(inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def call(*args: Any) -> Tensors:
            with tf.name_scope(scope), outlined(scope):
                inputs = [tf.convert_to_tensor(arg) for arg in args]
                return tf.nest.map_structure(_as_output, inner(*inputs))

        return call

    return decorate if func is None else decorate(func)


def _as_output(value: Any) -> tf.Tensor | None:
    return value if value is None else tf.convert_to_tensor(value)
