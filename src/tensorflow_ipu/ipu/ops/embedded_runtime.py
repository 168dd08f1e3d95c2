"""Runs executables from inside a TensorFlow program."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.compiler.plugin.poplar.ops import _host

from tensorflow_ipu._types import Message

from .._executables import executable_files
from .._executables.engine import ENGINES
from ._tensors import sizes

__all__ = [
    "RuntimeContext",
    "embedded_runtime_call",
    "embedded_runtime_start",
    "embedded_runtime_start_and_call",
    "embedded_runtime_stop",
]


class RuntimeContext:
    """A started executable; made by `embedded_runtime_start`."""

    def __init__(
        self, name: str, executable_file: Any, executable_proto: Any, start_output: Any
    ) -> None:
        self._name = name
        self._executable_file = executable_file
        self._executable_proto = executable_proto
        self._start_output = start_output

    def start_output(self) -> tf.Tensor:
        """The tensor whose evaluation starts the executable."""
        return self._start_output

    def name(self) -> str:
        """The name of the engine."""
        return self._name

    def signature(self) -> Message:
        """The inputs and outputs of the executable."""
        return self._executable_proto.embedded_runtime_config.signature

    def output_types(self) -> list[Any]:
        """The types of what a call gives."""
        outputs = self.signature().streamed_outputs
        return [executable_files.described_type(output) for output in outputs]


def embedded_runtime_start(
    executable_file: Any,
    inputs: Sequence[tf.Tensor] | Mapping[str, tf.Tensor],
    name: str,
    timeout: int | None = None,
) -> RuntimeContext:
    """Start an executable; `inputs` are a list, or by name.

    `timeout` is for pipelines that wait for the next batch on the device; here every
    batch is answered at once.
    """
    del timeout
    executable = executable_files.read(_path_of(executable_file))
    message = executable.signature()
    expected = message.embedded_runtime_config.signature.inputs
    tensors = _in_order(inputs, [value.name for value in expected])
    if len(expected) != len(tensors):
        raise Exception(
            f"Embedded application runtime expects {len(expected)} inputs, but"
            f" {len(tensors)} were provided."
        )
    _check(tensors, expected, Exception)
    engine = ENGINES.get(name, executable)
    started = _host.computed(engine.start, tensors, [tf.bool])[0]
    return RuntimeContext(name, executable_file, message, started)


def embedded_runtime_call(
    inputs: Sequence[Any], context: RuntimeContext
) -> list[tf.Tensor]:
    """The results of the executable for one batch."""
    expected = context.signature().streamed_inputs
    if len(inputs) != len(expected):
        raise Exception(
            f"A call of this application takes {len(expected)} inputs, not"
            f" {len(inputs)}."
        )
    _check(inputs, expected, TypeError)
    engine = ENGINES.running(context.name())
    with tf.control_dependencies(_as_dependency(context.start_output())):
        found = _host.computed(engine.call, inputs, context.output_types())
    for tensor, output in zip(found, context.signature().streamed_outputs, strict=True):
        tensor.set_shape(output.shape.dimensions)
    return found


def embedded_runtime_stop(context: RuntimeContext) -> None:
    """Stop an executable and free what it holds."""
    ENGINES.forget(context.name())


def embedded_runtime_start_and_call(
    executable_file: Any, startup_inputs: Any, call_inputs: Sequence[Any], name: str
) -> tuple[Any, RuntimeContext]:
    """Start an executable; the results for a batch, and the context of the next."""
    context = embedded_runtime_start(executable_file, startup_inputs, name)
    return embedded_runtime_call(call_inputs, context), context


def _find_opaque_blob(filename_tensor: Any) -> bytes:
    """The signature of an executable, as it is stored."""
    return (
        executable_files.read(_path_of(filename_tensor)).signature().SerializeToString()
    )


def _path_of(executable_file: Any) -> str:
    """The path in a string, or in a tensor of a graph or of eager mode."""
    if isinstance(executable_file, str | bytes | os.PathLike):
        return os.fsdecode(executable_file)
    value = tf.get_static_value(tf.convert_to_tensor(executable_file, tf.string))
    if value is None:
        with tf.compat.v1.Session() as session:
            value = session.run(executable_file)
    return os.fsdecode(getattr(value, "item", lambda: value)())


def _in_order(
    inputs: Sequence[tf.Tensor] | Mapping[str, tf.Tensor], names: Sequence[str]
) -> list[Any]:
    if isinstance(inputs, Mapping):
        missing = next((name for name in names if inputs.get(name) is None), None)
        if missing is not None:
            raise Exception(
                f"Failed to find input tensor with name '{missing}' in input"
                " dictionary."
            )
        return [inputs[name] for name in names]
    if not isinstance(inputs, list | tuple):
        raise Exception("Expected the inputs to be a list.")
    return list(inputs)


def _check(
    tensors: Sequence[Any], expected: Sequence[Any], wrong_type: type[Exception]
) -> None:
    """Refuse tensors of another shape or type than the executable takes."""
    for index, (tensor, value) in enumerate(zip(tensors, expected, strict=True)):
        place = f"at position {index} ('{value.name}')"
        shape, wanted = sizes(tensor), list(value.shape.dimensions)
        if shape != wanted:
            raise Exception(
                f"Mismatched input shape {place}. Expected {wanted}, but input {index}"
                f" has shape {shape}."
            )
        dtype = executable_files.described_type(value)
        if tf.as_dtype(tensor.dtype) != dtype:
            raise wrong_type(
                f"Mismatched input dtype {place}. Expected {dtype}, but input {index}"
                f" has dtype {tensor.dtype}."
            )


def _as_dependency(tensor: tf.Tensor) -> list[Any]:
    """Only tensors of graphs are evaluated later; others have been."""
    return [] if hasattr(tensor, "numpy") else [tensor]
