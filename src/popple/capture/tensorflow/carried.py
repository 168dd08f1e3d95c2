"""Lists of tensors that a loop carries from trip to trip.

In the body of a loop that is a function a list is one value with a row for each entry,
which trips write and read row by row. The value is made when the body first needs it:
only then is it known what entries look like, and many lists need none, because all of
their entries are the same (shapes that the backward pass asks for, weights).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from popple.capture.tensorflow.builder import GraphBuilder
from popple.capture.tensorflow.context import OpContext
from popple.capture.tensorflow.known import (
    AnyList,
    CarriedList,
    Known,
    StackedList,
    TensorList,
    names_in,
)
from popple.graph import Role, TensorType


@dataclass(eq=False)
class Slot:
    """The place of a list among what a loop carries.

    `start` is the list before the loop. `argument` is the value that the body is given
    for it, and `given` the one outside; both are empty while the body needs none.
    `is_fixed` says that the body does not change the list.
    """

    scope: LoopScope
    start: AnyList
    is_fixed: bool = False
    argument: str = ""
    given: str = ""

    def same_entry(self) -> tuple[Known] | None:
        """The entry, if all entries of the list are the same and none is computed."""
        if isinstance(self.start, CarriedList):
            is_plain = not self.start.value and not self.start.num_pushed
            return self.start.slot.same_entry() if is_plain else None
        items = self.start.items if isinstance(self.start, TensorList) else ()
        if not items or any(item is not items[0] for item in items):
            return None
        return (items[0],)


@dataclass(eq=False)
class LoopScope:
    """The body of a loop while it is walked: its builder and the lists it carries.

    `context` stands for the op that will run it, in front of which things are made that
    the first trip is given. `num_trips` is None if nobody knows; `outer` is the loop
    around, if its body is a function too; `stacks` are those of old-style loops, which
    the body does not name among its variables.
    """

    builder: GraphBuilder
    context: OpContext
    num_trips: int | None
    outer: LoopScope | None = None
    stacks: dict[str, Slot] = field(default_factory=dict[str, Slot])

    def carry(self, start: AnyList, is_fixed: bool = False) -> CarriedList:
        """A list as the body sees it when a trip begins."""
        return CarriedList(Slot(self, start, is_fixed))


def length_of(known: AnyList) -> int:
    """How many entries a list has: in a body, at the beginning of the first trip."""
    if isinstance(known, CarriedList):
        return length_of(known.slot.start) + known.num_pushed
    return known.length


def is_same_in_every_trip(scope: LoopScope, known: Known) -> bool:
    """Whether something is no value of the loop's body."""
    return all(name not in scope.builder.values for name in names_in(known))


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
    if known.num_pushed or context.builder is not known.slot.scope.builder:
        raise context.error("a list changes in a way that only unrolling can follow")
    slot = known.slot
    if not slot.argument:
        length = length_of(slot.start) + growth * _num_trips(context, slot.scope)
        kind = TensorType(entry.dtype, (max(length, 1), *entry.shape))
        slot.given = _value_outside(context, slot, kind)
        slot.argument = slot.scope.builder.declare(
            f"{context.tag.name}.list", kind, Role.ARGUMENT
        )
    return CarriedList(slot, slot.argument, known.num_pushed)


def _num_trips(context: OpContext, scope: LoopScope) -> int:
    if scope.num_trips is None:
        raise context.error("a list grows, nobody knows how long")
    return scope.num_trips


def _value_outside(context: OpContext, slot: Slot, kind: TensorType) -> str:
    """The entries before the loop in one value, made in front of the loop."""
    loop = slot.scope.context
    there = replace(loop, tag=replace(loop.tag, name=context.tag.name))
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
