"""Tensors made from nothing; an example tensor gives only its shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from popple.capture.tensorflow.constants import MAX_ELEMENTS
from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.control.carried import length_of
from popple.capture.tensorflow.known import (
    CarriedList,
    Known,
    StackedList,
    TensorList,
)


def _like(number: int) -> Rule:
    def lower(context: OpContext) -> Sequence[Known]:
        given = context.inputs[0]
        if isinstance(given, (TensorList, StackedList, CarriedList)):
            return [TensorList((None,) * length_of(given))]
        kind, output = context.input_type(0), context.op.outputs[0]
        # Small ones may be shapes or counters, which loops and branches need when
        # compiling.
        if kind.num_elements <= MAX_ELEMENTS:
            return [np.full(kind.shape, number, output.dtype.as_numpy_dtype)]
        return [context.emit_one("fill", [], kind)]

    return lower


def lower_fill(context: OpContext) -> Sequence[Known]:
    """One number, which may be computed, in every element."""
    value, result = context.inputs[1], context.result_type()
    if isinstance(value, np.ndarray):
        return [context.emit_one("fill", [], result)]
    name = context.name(1)
    return [context.emit_one("broadcast", [name], result, storage=name)]


def lower_new(context: OpContext) -> Sequence[Known]:
    """A tensor of one number."""
    return [context.emit_one("fill", [], context.result_type())]


def lower_iota(context: OpContext) -> Sequence[Known]:
    """Numbers in equal steps."""
    return [context.emit_one("iota", [], context.result_type())]


RULES: dict[str, Rule] = {
    "Empty": lower_new,
    "Fill": lower_fill,
    "LinSpace": lower_iota,
    "OnesLike": _like(1),
    "Range": lower_iota,
    "ZerosLike": _like(0),
}
