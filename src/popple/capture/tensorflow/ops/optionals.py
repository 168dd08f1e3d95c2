"""Values that may be missing, as the branches of a program give them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known, TensorList
from popple.capture.tensorflow.ops.lists import zeros


def _items(context: OpContext) -> tuple[Known, ...]:
    found = context.inputs[0]
    return found.items if isinstance(found, TensorList) else ()


def lower_value(context: OpContext) -> Sequence[Known]:
    """A value that is there: a list of what it holds."""
    return [TensorList(context.inputs)]


def lower_nothing(context: OpContext) -> Sequence[Known]:
    """A value that is missing."""
    return [TensorList(())]


def lower_contents(context: OpContext) -> Sequence[Known]:
    """What an optional value holds; zeros if it is missing."""
    items = _items(context)
    return [
        zeros(context, index) if index >= len(items) else items[index]
        for index in range(len(context.op.outputs))
    ]


def lower_presence(context: OpContext) -> Sequence[Known]:
    """Whether an optional value is there."""
    return [np.asarray(bool(_items(context)))]


RULES: dict[str, Rule] = {
    "OptionalFromValue": lower_value,
    "OptionalGetValue": lower_contents,
    "OptionalHasValue": lower_presence,
    "OptionalNone": lower_nothing,
}
