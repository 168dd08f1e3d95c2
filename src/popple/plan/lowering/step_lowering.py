"""From the steps of an op's plan to steps of the program, on the op's chip."""

from __future__ import annotations

from popple.graph import Op
from popple.plan.lowering.chip_tiles import ChipTiles
from popple.plan.opplan import Compute, HostCopy, LinkCopy, Loop, Move, PlanStep
from popple.program import (
    ComputeSet,
    Direction,
    Exchange,
    Execute,
    GlobalExchange,
    Repeat,
    Sequence,
    Step,
    StreamCopy,
)

Access = tuple[tuple[str, ...], tuple[str, ...]]
"""Names of the variables read, and of those written."""


class StepLowering:
    """Makes steps of a program from steps of plans.

    `mark` tells apart the steps of a function on the chips that run it.
    """

    def __init__(self, tiles: ChipTiles, mark: str = "") -> None:
        self._tiles = tiles
        self._mark = mark

    def label(self, op: Op, name: str) -> str:
        """The name of a step or temporary of an op; no other has the same."""
        return f"{op.name}{self._mark}/{name}"

    def lower(self, op: Op, step: PlanStep, name: str, access: Access) -> Step:
        """The program's step for one of a plan's; `name` is its own within the op."""
        reads, writes = access
        if isinstance(step, Compute):
            groups = self._tiles.planned_groups(step.vertices, op.chip)
            return Execute(ComputeSet(self.label(op, name), groups), *access, op.name)
        if isinstance(step, Move):
            return self._lower_move(op, step, name, access)
        if isinstance(step, HostCopy):
            return StreamCopy(
                self.label(op, name),
                Direction.TO_HOST if step.to_host else Direction.FROM_HOST,
                self._tiles.vector(step.bytes_by_tile, op.chip),
                step.is_remote_buffer,
                reads,
                writes,
                op.name,
            )
        if isinstance(step, LinkCopy):
            return self._lower_link(op, step, name, access)
        return self._lower_loop(op, step, name, access)

    def _lower_move(self, op: Op, step: Move, name: str, access: Access) -> Exchange:
        messages = step.messages_by_tile
        return Exchange(
            self.label(op, name),
            self._tiles.vector(step.sent_by_tile, op.chip),
            self._tiles.vector(step.received_by_tile, op.chip),
            None if messages is None else self._tiles.vector(messages, op.chip),
            step.is_shared,
            *access,
            op.name,
        )

    def _lower_link(
        self, op: Op, step: LinkCopy, name: str, access: Access
    ) -> GlobalExchange:
        source = op.chip if step.source_chip < 0 else step.source_chip
        reads, writes = access
        return GlobalExchange(
            self.label(op, name),
            ((source, op.chip, step.num_bytes),),
            self._tiles.vector(step.bytes_by_tile, source),
            self._tiles.vector(step.bytes_by_tile, op.chip),
            replicas=step.replicas,
            is_between_racks=step.is_between_racks,
            reads=reads,
            writes=writes,
            op=op.name,
        )

    def _lower_loop(self, op: Op, step: Loop, name: str, access: Access) -> Repeat:
        names = step_names(step.steps)
        body = [
            # Every step of a body touches all variables of the loop, which live through
            # it.
            self.lower(op, inner, f"{name}/{names[index]}", access)
            for index, inner in enumerate(step.steps)
        ]
        return Repeat(step.count, Sequence(tuple(body)), self.label(op, name))


def step_names(steps: tuple[PlanStep, ...]) -> list[str]:
    """Names of steps, numbered where one stands twice."""
    seen: dict[str, int] = {}
    names: list[str] = []
    for step in steps:
        name = "loop" if isinstance(step, Loop) else step.name
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names
