"""Arithmetic that the compiler does: ops whose inputs are all known.

Shapes, axes, loop counters. What is common is computed here with NumPy, since running
a single TensorFlow op takes a thousand times longer than the arithmetic in it; what is
not goes to TensorFlow. Large arrays are left to the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from popple.capture.tensorflow.framework import Array, Operation, evaluate
from popple.capture.tensorflow.types import is_on_machine

MAX_ELEMENTS = 4096
"""What has more elements is computed on the machine."""

# These run under TensorFlow's executor only; they mean nothing one by one.
_CONTROL = frozenset({"Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch"})

Evaluate = Callable[..., Any]

_BINARY: dict[str, Evaluate] = {
    "Add": np.add,
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "LogicalNot": np.logical_not,
    "Range": np.arange,
    "Fill": np.full,
    "Reshape": np.reshape,
}


def fold(op: Operation, inputs: Sequence[Any]) -> list[Array] | None:
    """The results of an op that can be computed when compiling, else None."""
    if not _is_foldable(op, inputs):
        return None
    # Two small inputs can make a huge array; its size is not that of the inputs.
    if op.type == "Fill" and int(np.prod(inputs[0])) > MAX_ELEMENTS:
        return None
    if (known := _BINARY.get(op.type)) is not None:
        # NumPy's rules of promotion are not TensorFlow's: the op says its result type.
        result = np.asarray(known(*inputs), op.outputs[0].dtype.as_numpy_dtype)
        return [result]
    return evaluate(op, inputs)


def _is_foldable(op: Operation, inputs: Sequence[Any]) -> bool:
    if not inputs or not all(isinstance(known, np.ndarray) for known in inputs):
        return False
    if sum(known.size for known in inputs) > MAX_ELEMENTS:
        return False
    if op.op_def.is_stateful or not op.outputs or op.type in _CONTROL:
        return False
    if "Random" in op.type:  # drawn on the machine even if the seed is known
        return False
    # Lists and handles cannot be held as arrays.
    return all(is_on_machine(output.dtype) for output in op.outputs)
