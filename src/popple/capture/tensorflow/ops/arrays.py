"""Stacks and TensorArrays of old-style loops: lists that ops name by a handle.

What a list holds is not handed from op to op but kept by name (`Effects.stacks`). The
order of TensorArrays' ops is in numbers that they hand on, the flow; these are known
when compiling, since nobody computes with them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.control.carried import length_of
from popple.capture.tensorflow.known import (
    AnyList,
    Known,
    Resource,
    StackedList,
    TensorList,
)
from popple.capture.tensorflow.ops.lists import (
    entry_at,
    joined_entries,
    popped,
    pushed,
    with_entry,
)

# One array for all: the flow orders ops in TensorFlow and is nothing on the machine.
_FLOW = np.zeros((), np.float32)


def _held(context: OpContext) -> AnyList:
    return context.effects.stack(context.resource(0).name)


def _hold(context: OpContext, known: AnyList) -> None:
    context.effects.stacks[context.resource(0).name] = known


def lower_new_stack(context: OpContext) -> Sequence[Known]:
    """StackV2: the stack of an old-style loop is a resource."""
    return [Resource(context.tag.name)]


def lower_stack_push(context: OpContext) -> Sequence[Known]:
    """One entry more on an old-style stack; the value passes through."""
    _hold(context, pushed(context, _held(context), context.inputs[1]))
    return [context.inputs[1]]


def lower_stack_pop(context: OpContext) -> Sequence[Known]:
    """The last entry of an old-style stack."""
    rest, item = popped(context, _held(context), output=0)
    _hold(context, rest)
    return [item]


def lower_new_array(context: OpContext) -> Sequence[Known]:
    """A TensorArray whose entries nobody has written."""
    (size,) = context.ints(0) or (0,)
    context.effects.stacks[context.tag.name] = TensorList((None,) * size)
    return [Resource(context.tag.name), _FLOW]


def lower_gradient_array(context: OpContext) -> Sequence[Known]:
    """The TensorArray of gradients beside another one, the same for all that ask."""
    # The backward pass asks for this array once per read; all must mean the same one.
    name = f"{context.resource(0).name}.{context.attr('source', '')}"
    if name not in context.effects.stacks:
        length = length_of(_held(context))
        context.effects.stacks[name] = TensorList((None,) * length)
    return [Resource(name), _FLOW]


def _place(context: OpContext) -> int | None:
    found = context.ints(1)
    return found[0] if found else None


def lower_write(context: OpContext) -> Sequence[Known]:
    """One entry written."""
    item = context.inputs[2]
    _hold(context, with_entry(context, _held(context), _place(context), item))
    return [_FLOW]


def lower_read(context: OpContext) -> Sequence[Known]:
    """One entry."""
    return [entry_at(context, _held(context), _place(context))]


def lower_scatter(context: OpContext) -> Sequence[Known]:
    """All entries at once: the rows of a tensor."""
    value = context.name(2)
    _hold(context, StackedList(value, context.type_of(value).shape[0]))
    return [_FLOW]


def lower_gather(context: OpContext) -> Sequence[Known]:
    """All entries in one tensor."""
    rest = (None,) * (len(context.op.outputs) - 1)
    return [joined_entries(context, _held(context)), *rest]


def lower_size(context: OpContext) -> Sequence[Known]:
    """How many entries there are."""
    return [np.asarray(length_of(_held(context)), np.int32)]


RULES: dict[str, Rule] = {
    "StackPopV2": lower_stack_pop,
    "StackPushV2": lower_stack_push,
    "StackV2": lower_new_stack,
    "TensorArrayCloseV3": lambda _: [],
    "TensorArrayConcatV3": lower_gather,
    "TensorArrayGatherV3": lower_gather,
    "TensorArrayGradV3": lower_gradient_array,
    "TensorArrayReadV3": lower_read,
    "TensorArrayScatterV3": lower_scatter,
    "TensorArraySizeV3": lower_size,
    "TensorArrayV3": lower_new_array,
    "TensorArrayWriteV3": lower_write,
}
