"""LoopScope: the body of a loop that is being walked as a function."""

from __future__ import annotations

from dataclasses import dataclass, field

from popple.capture.tensorflow.builder import GraphBuilder
from popple.capture.tensorflow.known import AnyList, CarriedList, Slot
from popple.capture.tensorflow.tags import Tag


@dataclass(eq=False)
class LoopScope:
    """The body of a loop while it is walked: its builder and the lists it carries.

    `tag` is that of the op that will run the loop; initial values of lists are made in
    front of that op. `num_trips` is None if the number of trips depends on data;
    `outer` is the surrounding loop, if its body is a function too. `slots` are all
    lists that the loop carries, `stacks` those among them that are stacks of old-style
    loops: TensorFlow does not list these among the variables of a loop.
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
