"""Compiles a function into an executable file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v2 as tf

from .._executables import tracing

_NAME = "application_compile"


def experimental_application_compile_op(
    func: Callable[..., Any],
    inputs: Sequence[Any] | None = None,
    output_path: str | None = None,
    freeze_variables: bool = False,
    name: str | None = None,
) -> tf.Tensor:
    """Write `func(*inputs)` as an executable; its path, as a string tensor.

    Variables are frozen to the values they have when the result is evaluated, or they
    become inputs of the executable's start. Without a path it is a temporary file.
    """
    name = name or _NAME
    path = output_path or _temporary(name)
    given = [tf.convert_to_tensor(value) for value in _as_list(inputs)]
    make, values = tracing.trace(func, given, freeze_variables, name)

    def write(*arrays: Any) -> Any:
        make([np.asarray(array) for array in arrays]).write(path)
        return np.array(os.fsencode(path), dtype=object)

    if tf.executing_eagerly():
        write(*values)
        return tf.constant(path)
    with tf.device("/device:CPU:0"):
        written = tf.numpy_function(write, values, tf.string, name=name)
    written.set_shape([])
    return written


def _temporary(name: str) -> str:
    handle, path = tempfile.mkstemp(prefix=name, suffix=".poplar_exec")
    os.close(handle)
    return path


def _as_list(values: Any) -> list[Any]:
    if values is None:
        return []
    return list(values) if isinstance(values, list | tuple) else [values]
