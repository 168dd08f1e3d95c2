"""Effects: what a program does beyond computing values.

It reads and overwrites variables, lets optimisers update them, sends tensors to the
host, and keeps stacks between old-style loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from popple.capture.tensorflow.builder import GraphBuilder
from popple.capture.tensorflow.control.scopes import LoopScope
from popple.capture.tensorflow.known import AnyList, Resource, TensorList
from popple.capture.tensorflow.tags import Tag
from popple.graph import Role, TensorType


@dataclass(frozen=True)
class Update:
    """What an optimiser's op does to a variable.

    `kind` is the op of the Graph that stands for it, with `num_states` state tensors.
    `loop_depth` is the number of the program's loops it lies in.
    """

    kind: str
    num_states: int
    gradient: str
    loop_depth: int = 0


@dataclass
class Effects:
    """The effects of the program walked so far.

    `names` are the values that stand for variables before the first op, `outputs` go
    to the host, `fed` come from there for every micro-batch. `loop_depth` is the number
    of the program's loops being walked. Attributes of ops set `accumulation`
    (micro-batches per update), `schedule` (how pipeline stages take turns), `off_chip`
    (kinds of tensors in off-chip memory) and `stage_options` (plan options by stage).
    `stacks` are those of old-style loops, `scope` is the loop whose body is walked as
    a function.
    """

    builder: GraphBuilder
    names: dict[str, str] = field(default_factory=dict[str, str])
    updates: dict[str, Update] = field(default_factory=dict[str, Update])
    outputs: list[str] = field(default_factory=list[str])
    fed: list[str] = field(default_factory=list[str])
    loop_depth: int = 0
    accumulation: int = 1
    schedule: int | None = None
    off_chip: frozenset[str] = frozenset()
    stage_options: str = ""
    stacks: dict[str, AnyList] = field(default_factory=dict[str, Any])
    scope: LoopScope | None = None
    _current: dict[str, str] = field(default_factory=dict[str, str])

    def read(self, resource: Resource, kind: TensorType) -> str:
        """The value that a variable holds now."""
        if resource.name not in self._current:
            # Declared by the first read, so variables that a program never reads take
            # no memory.
            role = Role.WEIGHT if resource.is_trained else Role.STATE
            value = self.builder.declare(resource.name, kind, role)
            self._current[resource.name] = self.names[resource.name] = value
        return self._current[resource.name]

    def find_type(self, resource: Resource) -> TensorType | None:
        """The type of a variable that was read before."""
        name = self._current.get(resource.name)
        return None if name is None else self.builder.type_of(name)

    def write(self, resource: Resource, value: str) -> None:
        """The variable holds this value from now on."""
        self._current[resource.name] = value

    def note(self, tag: Tag) -> None:
        """What an op says about the program it is in."""
        # Any op may carry the remark, most do not: the default must not overwrite it.
        self.accumulation = max(self.accumulation, tag.accumulation)
        self.schedule = self.schedule if tag.schedule is None else tag.schedule
        self.off_chip |= tag.off_chip
        self.stage_options = tag.stage_options or self.stage_options

    def forget_writes(self) -> None:
        """Variables hold what an earlier trip of a loop left in them."""
        self._current.update(self.names)

    def update(
        self, resource: Resource, kind: str, num_states: int, gradient: str
    ) -> None:
        """An optimiser's op on the variable."""
        self.updates[resource.name] = Update(
            kind, num_states, gradient, self.loop_depth
        )

    def stack(self, name: str) -> AnyList:
        """The entries of a stack; the body of a loop carries those that it uses."""
        return self._stack_in(self.scope, name)

    def _stack_in(self, scope: LoopScope | None, name: str) -> AnyList:
        if scope is None or name in scope.stacks:
            return self.stacks.get(name, TensorList(()))
        # Nested loops hand a stack inwards one by one: each of them has to carry it.
        carried = scope.carry(self._stack_in(scope.outer, name))
        scope.stacks[name] = carried.slot
        self.stacks[name] = carried
        return carried
