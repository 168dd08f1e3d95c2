"""TensorArrays and stacks: what loops write to and read from, entry by entry.

Loops of a step are walked in full, so every entry is known. An entry is the value that
was written; joining all of them is where the copy is paid.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known, Resource, TensorList
from popple.capture.tensorflow.ops.forms import emit_elementwise
from popple.graph import TensorType


def _list(context: OpContext, index: int = 0) -> TensorList:
    found = context.inputs[index]
    return found if isinstance(found, TensorList) else TensorList(())


def _number(context: OpContext, index: int) -> int | None:
    found = context.ints(index)
    return found[0] if found else None


def lower_empty(context: OpContext) -> Sequence[Known]:
    """A list without entries."""
    return [TensorList(())]


def lower_reserve(context: OpContext) -> Sequence[Known]:
    """A list of a known length whose entries nobody has written."""
    return [TensorList((None,) * (_number(context, 1) or 0))]


def lower_set(context: OpContext) -> Sequence[Known]:
    """One entry replaced; an unknown place stands for the first."""
    index = _number(context, 1) or 0
    return [_list(context).with_item(index, context.inputs[2])]


def lower_get(context: OpContext) -> Sequence[Known]:
    """One entry; one that nobody wrote is zeros."""
    index, items = _number(context, 1) or 0, _list(context).items
    found = items[index] if index < len(items) else None
    return [_zeros(context, 0) if found is None else found]


def _zeros(context: OpContext, output: int) -> Known:
    kind = context.found_types[output]
    if kind is None:
        return None
    return context.emit_one("fill", [], kind, suffix=".unwritten")


def lower_push(context: OpContext) -> Sequence[Known]:
    """One entry more."""
    return [TensorList((*_list(context).items, context.inputs[1]))]


def lower_pop(context: OpContext) -> Sequence[Known]:
    """The list without its last entry, and that entry."""
    items = _list(context).items
    if not items:
        return [TensorList(()), _zeros(context, 1)]
    last = _zeros(context, 1) if items[-1] is None else items[-1]
    return [TensorList(items[:-1]), last]


def lower_from_tensor(context: OpContext) -> Sequence[Known]:
    """The rows of a tensor, each a view that is copied out when it is read."""
    source = context.name(0)
    kind = context.type_of(source)
    row = TensorType(kind.dtype, kind.shape[1:])
    rows: list[Known] = [
        context.emit_one(
            "slice",
            [source],
            row,
            suffix=f".{index}",
            storage=source,
            attrs={"dim": 0, "start": index},
        )
        for index in range(kind.shape[0])
    ]
    return [TensorList(tuple(rows))]


def lower_stack(context: OpContext) -> Sequence[Known]:
    """All entries in one tensor."""
    items = [item for item in _list(context).items if item is not None]
    if not items:
        return [_zeros(context, 0)]
    names = [
        context.name_of(item, f"{context.tag.name}.{index}")
        for index, item in enumerate(items)
    ]
    kind = context.type_of(names[0])
    count = len(_list(context).items)
    result = TensorType(kind.dtype, (count, *kind.shape))
    if context.kind.startswith("TensorListConcat"):
        result = TensorType(kind.dtype, (count * kind.shape[0], *kind.shape[1:]))
    made = context.emit_one("concat", names, result, attrs={"dim": 0})
    return [made, *(None,) * (len(context.op.outputs) - 1)]


def lower_length(context: OpContext) -> Sequence[Known]:
    """How many entries there are."""
    return [np.asarray(len(_list(context).items), np.int32)]


def lower_element_shape(context: OpContext) -> Sequence[Known]:
    """The shape of the entries, as far as one was written."""
    dtype = context.op.outputs[0].dtype.as_numpy_dtype
    for item in _list(context).items:
        if isinstance(item, np.ndarray):
            return [np.asarray(item.shape, dtype)]
        if isinstance(item, str):
            return [np.asarray(context.type_of(item).shape, dtype)]
    return [np.asarray(-1, dtype)]


def add_lists(context: OpContext) -> Sequence[Known]:
    """AddN of lists: entry by entry; what nobody wrote is zero."""
    lists = [_list(context, index) for index in range(len(context.inputs))]
    length = max(len(each.items) for each in lists)
    return [TensorList(tuple(_summed(context, lists, i) for i in range(length)))]


def _summed(context: OpContext, lists: Sequence[TensorList], index: int) -> Known:
    entries = [each.items[index] for each in lists if index < len(each.items)]
    written = [entry for entry in entries if entry is not None]
    if not written:
        return None
    total = written[0]
    for other in written[1:]:
        name = context.name_of(total, f"{context.tag.name}.{index}")
        kind = context.type_of(name)
        total = emit_elementwise(context, "add", [name, other], kind, f".{index}")
    return total


def lower_optional(context: OpContext) -> Sequence[Known]:
    """A value that may be missing: a list of what it holds."""
    return [TensorList(context.inputs)]


def lower_optional_value(context: OpContext) -> Sequence[Known]:
    """What an optional value holds; zeros if it is missing."""
    items = _list(context).items
    return [
        _zeros(context, index) if index >= len(items) else items[index]
        for index in range(len(context.op.outputs))
    ]


def lower_optional_presence(context: OpContext) -> Sequence[Known]:
    """Whether an optional value is there."""
    return [np.asarray(bool(_list(context).items))]


def lower_new_stack(context: OpContext) -> Sequence[Known]:
    """StackV2: the stack of an old-style loop is a resource."""
    return [Resource(context.tag.name)]


def lower_stack_push(context: OpContext) -> Sequence[Known]:
    """One entry more on an old-style stack; the value passes through."""
    context.effects.stack(context.resource(0)).append(context.inputs[1])
    return [context.inputs[1]]


def lower_stack_pop(context: OpContext) -> Sequence[Known]:
    """The last entry of an old-style stack."""
    stack = context.effects.stack(context.resource(0))
    return [stack.pop() if stack else _zeros(context, 0)]


RULES: dict[str, Rule] = {
    "EmptyTensorList": lower_empty,
    "OptionalFromValue": lower_optional,
    "OptionalGetValue": lower_optional_value,
    "OptionalHasValue": lower_optional_presence,
    "OptionalNone": lower_empty,
    "StackPopV2": lower_stack_pop,
    "StackPushV2": lower_stack_push,
    "StackV2": lower_new_stack,
    "TensorListConcat": lower_stack,
    "TensorListConcatV2": lower_stack,
    "TensorListElementShape": lower_element_shape,
    "TensorListFromTensor": lower_from_tensor,
    "TensorListGetItem": lower_get,
    "TensorListLength": lower_length,
    "TensorListPopBack": lower_pop,
    "TensorListPushBack": lower_push,
    "TensorListReserve": lower_reserve,
    "TensorListSetItem": lower_set,
    "TensorListStack": lower_stack,
}
