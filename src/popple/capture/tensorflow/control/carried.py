"""Lists of tensors that a loop carries from trip to trip.

In the body of a loop that is a function a list is one value with a row for each entry,
which trips write and read row by row. The value is made when the body first needs it:
only then is it known what entries look like, and many lists need none, because all of
their entries are the same (shapes that the backward pass asks for, weights).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from popple.capture.tensorflow.context import OpContext
from popple.capture.tensorflow.control.scopes import LoopScope
from popple.capture.tensorflow.known import (
    AnyList,
    CarriedList,
    Known,
    Slot,
    StackedList,
    TensorList,
    names_in,
)
from popple.graph import Role, TensorType


def length_of(known: AnyList) -> int:
    """How many entries a list has: in a body, at the beginning of the first trip."""
    if isinstance(known, CarriedList):
        return length_of(known.slot.start) + known.num_pushed
    return known.length


def is_same_in_every_trip(context: OpContext, slot: Slot, known: Known) -> bool:
    """Whether something is no value of the body of the loop that carries a list."""
    # Loops inside have builders of their own, so the scope of the list decides.
    values = _scope_of(context, slot).builder.values
    return all(name not in values for name in names_in(known))


def _scope_of(context: OpContext, slot: Slot) -> LoopScope:
    scope = context.effects.scope
    while scope is not None and slot not in scope.slots:
        scope = scope.outer
    assert scope is not None, "a list is carried inside its loop only"
    return scope


def written(
    context: OpContext, known: CarriedList, item: str, growth: int
) -> CarriedList:
    """The list with one entry written: another one, or one more."""
    held = _held(context, known, context.type_of(item), growth)
    kind = context.type_of(held.value)
    value = context.emit_one(
        "stash", [held.value, item], kind, suffix=".write", storage=held.value
    )
    return CarriedList(held.slot, value, known.num_pushed + growth)


def read(context: OpContext, known: CarriedList, entry: TensorType) -> tuple[str, str]:
    """An entry, and the value it was read from."""
    held = _held(context, known, entry, 0)
    return context.emit_one("restore", [held.value], entry), held.value


def entry_type(context: OpContext, known: AnyList) -> TensorType | None:
    """What entries look like, as far as one was written."""
    if isinstance(known, CarriedList):
        if not known.value:
            return entry_type(context, known.slot.start)
        known = StackedList(known.value, 0)
    if isinstance(known, StackedList):
        kind = context.type_of(known.value)
        return TensorType(kind.dtype, kind.shape[1:])
    for item in known.items:
        if isinstance(item, (str, np.ndarray)):
            return context.type_of(context.name_of(item, f"{context.tag.name}.entry"))
    return None


def _held(
    context: OpContext, known: CarriedList, entry: TensorType, growth: int
) -> CarriedList:
    """The list with a value that holds its entries."""
    if known.value:
        if context.type_of(known.value).shape[1:] == entry.shape:
            return known
        raise context.error("the entries of a list differ in shape")
    slot = known.slot
    scope = _scope_of(context, slot)
    # Entries pushed without a value are not in memory; and an inner function cannot add
    # an argument to the loop around it.
    if known.num_pushed or context.builder is not scope.builder:
        raise context.error("a list changes in a way that only unrolling can follow")
    if not slot.argument:
        # Memory on tiles is laid out when compiling: there is a row for every trip.
        length = length_of(slot.start) + growth * _num_trips(context, scope)
        kind = TensorType(entry.dtype, (max(length, 1), *entry.shape))
        slot.given = _value_outside(context, scope, slot, kind)
        slot.argument = scope.builder.declare(
            f"{context.tag.name}.list", kind, Role.ARGUMENT
        )
    return CarriedList(slot, slot.argument, known.num_pushed)


def _num_trips(context: OpContext, scope: LoopScope) -> int:
    if scope.num_trips is None:
        raise context.error("a list grows, nobody knows how long")
    return scope.num_trips


def _value_outside(
    context: OpContext, scope: LoopScope, slot: Slot, kind: TensorType
) -> str:
    """The entries before the loop in one value, made in front of the loop."""
    outside = scope.builder.outer
    assert outside is not None, "the body of a loop is a function"
    # Phase and place are those of the loop, since this runs before it, once.
    tag = replace(scope.tag, name=context.tag.name)
    there = OpContext(outside, context.effects, context.op, tag, ())
    start = slot.start
    if isinstance(start, CarriedList):
        entry = TensorType(kind.dtype, kind.shape[1:])
        start = StackedList(_held(there, start, entry, 0).value, kind.shape[0])
    if isinstance(start, StackedList):
        if there.type_of(start.value) != kind:
            raise context.error("a list from another loop grows")
        return start.value
    return _stacked(there, start, kind)


def _stacked(context: OpContext, known: TensorList, kind: TensorType) -> str:
    """Entries side by side, zeros where nobody wrote one yet."""
    if all(item is None for item in known.items):
        return context.emit_one("fill", [], kind, suffix=".list")
    entry = TensorType(kind.dtype, kind.shape[1:])
    missing = kind.shape[0] - known.length
    names = [
        context.emit_one("fill", [], entry, suffix=".unwritten")
        if item is None
        else context.name_of(item, f"{context.tag.name}.entry")
        for item in (*known.items, *(None,) * missing)
    ]
    return context.emit_one("concat", names, kind, suffix=".list", attrs={"dim": 0})
