"""Lists of tensors: what loops write to and read from, entry by entry.

A list outside of loops, or in one that is unrolled, has entries that are known one by
one, or are the rows of a tensor; joining entries is where the copy is paid. In the body
of a loop that is a function it is one value, of which trips write and read rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.control.carried import (
    entry_type,
    is_same_in_every_trip,
    length_of,
    read,
    written,
)
from popple.capture.tensorflow.known import (
    AnyList,
    CarriedList,
    Known,
    StackedList,
    TensorList,
)
from popple.capture.tensorflow.ops.forms import emit_elementwise
from popple.graph import TensorType


def _list(context: OpContext, index: int = 0) -> AnyList:
    found = context.inputs[index]
    is_list = isinstance(found, (TensorList, StackedList, CarriedList))
    return found if is_list else TensorList(())


def _items(context: OpContext, known: AnyList) -> tuple[Known, ...]:
    """All entries, each by itself; rows of a tensor are views."""
    if isinstance(known, TensorList):
        return known.items
    if isinstance(known, StackedList):
        return tuple(_row(context, known, index) for index in range(known.length))
    raise context.error("the entries of a list are not known one by one in a loop")


def _row(context: OpContext, known: StackedList, index: int) -> str:
    kind = context.type_of(known.value)
    return context.emit_one(
        "slice",
        [known.value],
        TensorType(kind.dtype, kind.shape[1:]),
        suffix=f".{index}",
        storage=known.value,
        attrs={"dim": 0, "start": index},
    )


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
    index = _number(context, 1)
    return [with_entry(context, _list(context), index, context.inputs[2])]


def with_entry(
    context: OpContext, known: AnyList, index: int | None, item: Known
) -> AnyList:
    """A list with one entry replaced; an unknown place stands for the first."""
    if isinstance(known, CarriedList):
        # None: the machine has no part in the entry, so there is nothing to write.
        return known if item is None else _write(context, known, item)
    return TensorList(_items(context, known)).with_item(index or 0, item)


def _write(
    context: OpContext, known: CarriedList, item: Known, growth: int = 0
) -> CarriedList:
    name = context.name_of(item, f"{context.tag.name}.entry")
    return written(context, known, name, growth)


def lower_get(context: OpContext) -> Sequence[Known]:
    """One entry; one that nobody wrote is zeros."""
    return [entry_at(context, _list(context), _number(context, 1))]


def entry_at(context: OpContext, known: AnyList, index: int | None) -> Known:
    """One entry of a list; an unknown place stands for the first."""
    if isinstance(known, CarriedList):
        return _read(context, known, known.slot.is_fixed)[0]
    # Which row is not known when compiling: the machine copies it out by an index.
    if index is None and isinstance(known, StackedList):
        kind = context.type_of(known.value)
        entry = TensorType(kind.dtype, kind.shape[1:])
        return context.emit_one("restore", [known.value], entry)
    index = index or 0
    if index >= length_of(known):
        return zeros(context, 0)
    if isinstance(known, StackedList):
        return _row(context, known, index)
    found = known.items[index]
    return zeros(context, 0) if found is None else found


def _read(
    context: OpContext, known: CarriedList, is_unwritten: bool, output: int = 0
) -> tuple[Known, str]:
    """An entry in the body of a loop, and the value it was read from if there is one.

    If the loop writes none, all entries may be the same.
    """
    same = known.slot.same_entry() if is_unwritten and not known.value else None
    if same is not None and same[0] is not None:
        return same[0], ""
    entry = entry_type(context, known) or context.found_types[output]
    if entry is None or same is not None:
        return zeros(context, output), ""
    return read(context, known, entry)


def zeros(context: OpContext, output: int) -> Known:
    """What an entry is that nobody wrote; None if its shape is not known."""
    kind = context.found_types[output]
    if kind is None:
        return None
    return context.emit_one("fill", [], kind, suffix=".unwritten")


def lower_push(context: OpContext) -> Sequence[Known]:
    """One entry more."""
    return [pushed(context, _list(context), context.inputs[1])]


def pushed(context: OpContext, known: AnyList, item: Known) -> AnyList:
    """A list with one entry more."""
    if not isinstance(known, CarriedList):
        return TensorList((*_items(context, known), item))
    # A list is either all the same entry or a value with rows, never both.
    is_first = not known.value and not known.num_pushed
    if is_first and is_same_in_every_trip(context, known.slot, item):
        return replace(known, num_pushed=1, pushed=item)
    return _write(context, known, item, growth=1)


def lower_pop(context: OpContext) -> Sequence[Known]:
    """The list without its last entry, and that entry."""
    return popped(context, _list(context), output=1)


def popped(context: OpContext, known: AnyList, output: int) -> tuple[AnyList, Known]:
    """A list without its last entry, and that entry, which is such an output."""
    if isinstance(known, CarriedList):
        if known.num_pushed > 0 and not known.value:
            return CarriedList(known.slot), known.pushed
        item, value = _read(context, known, is_unwritten=True, output=output)
        return CarriedList(known.slot, value, known.num_pushed - 1), item
    if not length_of(known):
        return TensorList(()), zeros(context, output)
    if isinstance(known, StackedList):
        last: Known = _row(context, known, known.length - 1)
        return StackedList(known.value, known.length - 1), last
    last = known.items[-1]
    shown = zeros(context, output) if last is None else last
    return TensorList(known.items[:-1]), shown


def lower_from_tensor(context: OpContext) -> Sequence[Known]:
    """The rows of a tensor."""
    source = context.name(0)
    return [StackedList(source, context.type_of(source).shape[0])]


def lower_stack(context: OpContext) -> Sequence[Known]:
    """All entries in one tensor."""
    rest = (None,) * (len(context.op.outputs) - 1)
    return [joined_entries(context, _list(context)), *rest]


def joined_entries(context: OpContext, known: AnyList) -> Known:
    """All entries side by side; concatenations have no dimension for them."""
    if isinstance(known, CarriedList) and not known.value:
        known = known.slot.start
    if isinstance(known, CarriedList):
        known = StackedList(known.value, context.type_of(known.value).shape[0])
    if isinstance(known, StackedList):
        return _joined(context, _cut(context, known))
    items = [item for item in known.items if item is not None]
    if not items:
        return zeros(context, 0)
    names = [
        context.name_of(item, f"{context.tag.name}.{index}")
        for index, item in enumerate(items)
    ]
    kind = context.type_of(names[0])
    result = TensorType(kind.dtype, (known.length, *kind.shape))
    if "Concat" in context.kind:
        shape = (known.length * kind.shape[0], *kind.shape[1:])
        result = TensorType(kind.dtype, shape)
    return context.emit_one("concat", names, result, attrs={"dim": 0})


def _cut(context: OpContext, known: StackedList) -> str:
    """The rows that are entries; after a loop that took some away, not all are."""
    kind = context.type_of(known.value)
    if kind.shape[0] == known.length:
        return known.value
    shown = TensorType(kind.dtype, (known.length, *kind.shape[1:]))
    return context.emit_one(
        "slice",
        [known.value],
        shown,
        storage=known.value,
        attrs={"dim": 0, "start": 0},
    )


def _joined(context: OpContext, value: str) -> str:
    if "Concat" not in context.kind:
        return value
    first, second, *others = context.type_of(value).shape
    return context.reshape(value, (first * second, *others), ".joined")


def lower_length(context: OpContext) -> Sequence[Known]:
    """How many entries there are."""
    return [np.asarray(length_of(_list(context)), np.int32)]


def lower_element_shape(context: OpContext) -> Sequence[Known]:
    """The shape of the entries, as far as one was written."""
    dtype = context.op.outputs[0].dtype.as_numpy_dtype
    kind = entry_type(context, _list(context))
    return [np.asarray(-1 if kind is None else kind.shape, dtype)]


def add_lists(context: OpContext) -> Sequence[Known]:
    """AddN of lists: entry by entry; what nobody wrote is zero."""
    lists = [_list(context, index) for index in range(len(context.inputs))]
    carried = [each for each in lists if isinstance(each, CarriedList)]
    if carried:
        others = [each for each in lists if each is not carried[0]]
        return [_with_all(context, carried[0], others)]
    stacked = [each for each in lists if isinstance(each, StackedList)]
    if len(stacked) == len(lists) and len({each.length for each in stacked}) == 1:
        names = [_cut(context, each) for each in stacked]
        total = _sum(context, names, "")
        return [StackedList(context.name_of(total, ""), stacked[0].length)]
    entries = [_items(context, each) for each in lists]
    length = max(map(len, entries))
    rows = [[items[i] for items in entries if i < len(items)] for i in range(length)]
    sums = (_sum(context, row, f".{i}") for i, row in enumerate(rows))
    return [TensorList(tuple(sums))]


def _with_all(
    context: OpContext, known: CarriedList, others: Sequence[AnyList]
) -> AnyList:
    """A list of a loop plus others.

    Entries of the others that are known one by one were made in this trip: they are the
    first at their places, and adding them is writing them.
    """
    for other in others:
        if not isinstance(other, TensorList):
            raise context.error("two lists of a loop are added")
        for item in other.items:
            known = known if item is None else _write(context, known, item)
    return known


def _sum(context: OpContext, entries: Sequence[Known], suffix: str) -> Known:
    """The sum of those entries that were written."""
    present = [entry for entry in entries if entry is not None]
    if not present:
        return None
    total = present[0]
    for other in present[1:]:
        name = context.name_of(total, f"{context.tag.name}{suffix}")
        kind = context.type_of(name)
        total = emit_elementwise(context, "add", [name, other], kind, suffix)
    return total


RULES: dict[str, Rule] = {
    "EmptyTensorList": lower_empty,
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
