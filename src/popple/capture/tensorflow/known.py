"""What is known about a tensor while a program is walked.

A tensor is a value of the Graph (its name), a constant (an array, known when
compiling), a resource (a variable, an iterator, a queue), a list of tensors in one of
three forms, what a recurrent layer keeps for its gradient, something in a branch that
is not taken, or None: something the machine has no part in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from popple.graph import Notes


@dataclass(frozen=True)
class Resource:
    """A variable, an iterator or a queue, by a name that no other has."""

    name: str
    is_trained: bool = False


@dataclass(frozen=True)
class TensorList:
    """A list of tensors whose entries are known one by one."""

    items: tuple[Known, ...]

    @property
    def length(self) -> int:
        """How many entries there are."""
        return len(self.items)

    def with_item(self, index: int, item: Known) -> TensorList:
        """The list with one entry replaced; it grows if it is too short."""
        missing = max(0, index + 1 - len(self.items))
        items = [*self.items, *(None,) * missing]
        items[index] = item
        return replace(self, items=tuple(items))


@dataclass(frozen=True)
class StackedList:
    """A list of tensors that are the first `length` rows of one value."""

    value: str
    length: int


# Two lists with the same start are still two places: compared by identity.
@dataclass(eq=False)
class Slot:
    """The place of a list among what a loop carries.

    `start` is the list before the loop. `argument` is the value that the body is given
    for it, and `given` the one outside; both are empty while the body needs none.
    `is_fixed` says that the body does not change the list.
    """

    start: AnyList
    is_fixed: bool = False
    argument: str = ""
    given: str = ""

    def same_entry(self) -> tuple[Known] | None:
        """What all entries of the list are, in a tuple; None if they may differ."""
        if isinstance(self.start, CarriedList):
            is_plain = not self.start.value and not self.start.num_pushed
            return self.start.slot.same_entry() if is_plain else None
        items = self.start.items if isinstance(self.start, TensorList) else ()
        # `is`, since `==` of two arrays is an array, not an answer.
        if not items or any(item is not items[0] for item in items):
            return None
        return (items[0],)


@dataclass(frozen=True)
class CarriedList:
    """A list of tensors inside the body of a loop that is a function.

    `value` holds all entries; it is empty as long as the body has not written or read
    one. `num_pushed` counts entries that a trip has added or, if negative, taken away.
    `pushed` is an entry that is the same in every trip, so that no value is needed.
    """

    slot: Slot
    value: str = ""
    num_pushed: int = 0
    pushed: Known = None


AnyList: TypeAlias = "TensorList | StackedList | CarriedList"


@dataclass(frozen=True)
class KeptLayer:
    """What a recurrent layer keeps for its gradient.

    `value` holds it; `inputs` are those of the layer's op, `arguments` names those of
    the function that the program calls, `notes` are those on the gradient's op.
    """

    value: str
    inputs: tuple[str, ...]
    arguments: tuple[str, ...]
    cell: str
    num_states: int
    notes: Notes


@dataclass(frozen=True)
class NotTaken:
    """A tensor in an old-style branch that is not taken."""


Known: TypeAlias = (
    "str | np.ndarray[Any, Any] | Resource | AnyList | KeptLayer | NotTaken | None"
)


def names_in(known: Known) -> tuple[str, ...]:
    """The values of the Graph that something known consists of."""
    if isinstance(known, str):
        return (known,)
    if isinstance(known, TensorList):
        return tuple(name for item in known.items for name in names_in(item))
    if isinstance(known, KeptLayer):
        return (known.value, *known.inputs)
    if isinstance(known, StackedList):
        return (known.value,)
    if isinstance(known, CarriedList):
        return (known.value,) if known.value else names_in(known.pushed)
    return ()
