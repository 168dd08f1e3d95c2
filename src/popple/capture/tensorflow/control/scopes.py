"""LoopScope: the body of a loop that is being walked as a function."""

from __future__ import annotations

from dataclasses import dataclass, field

from popple.capture.tensorflow.builder import GraphBuilder
from popple.capture.tensorflow.known import AnyList, CarriedList, Slot
from popple.capture.tensorflow.tags import Tag


@dataclass(eq=False)
class LoopScope:
    """The body of a loop while it is walked: its builder and the lists it carries.

    `tag` is that of the op that will run it, in front of which things are made that the
    first trip is given. `num_trips` is None if nobody knows; `outer` is the loop
    around, if its body is a function too. `slots` are the places of all lists, `stacks`
    those of the stacks of old-style loops, which the body does not name among its
    variables.
    """

    builder: GraphBuilder
    tag: Tag
    num_trips: int | None
    outer: LoopScope | None = None
    slots: list[Slot] = field(default_factory=list[Slot])
    stacks: dict[str, Slot] = field(default_factory=dict[str, Slot])

    def carry(self, start: AnyList, is_fixed: bool = False) -> CarriedList:
        """A list as the body sees it when a trip begins."""
        self.slots.append(Slot(start, is_fixed))
        return CarriedList(self.slots[-1])
