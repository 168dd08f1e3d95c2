"""Parts of a step: child steps, tile vectors, variables that it reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from popple.program.steps import (
    Call,
    Exchange,
    Execute,
    GlobalExchange,
    If,
    Parallel,
    Repeat,
    RepeatWhile,
    Sequence,
    Step,
    StreamCopy,
    Switch,
    Sync,
    WriteUndef,
)
from popple.program.tiles import TileVector

_CHILDREN: Mapping[type[Step], Callable[[Any], tuple[Step, ...]]] = {
    Sequence: lambda step: step.steps,
    Parallel: lambda step: step.branches,
    Repeat: lambda step: (step.body,),
    RepeatWhile: lambda step: (step.condition, step.body),
    If: lambda step: (step.then, step.otherwise),
    Switch: lambda step: (*(case for _, case in step.cases), step.default),
}


def children_of(step: Step) -> tuple[Step, ...]:
    """The steps directly inside a step, in order of execution or of listing."""
    # By type, as most steps are leaves: large programs ask a million times.
    find = _CHILDREN.get(type(step))
    return find(step) if find else ()


def label_of(step: Step) -> str:
    """A short name for a step: its own, or that of its kind."""
    if isinstance(step, Execute):
        return step.compute_set.name
    if isinstance(step, Call):
        return step.label or step.function
    if isinstance(step, Sync | WriteUndef) or not step.name:
        return type(step).__name__
    return step.name


def accesses_of(step: Step) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The variables a step itself reads, and those it writes or ends."""
    if isinstance(step, Execute | Exchange | GlobalExchange | StreamCopy):
        return step.reads, step.writes
    if isinstance(step, WriteUndef):
        return (), (step.variable,)
    # Every tile tests the predicate itself, so the variable must be live until then.
    if isinstance(step, If | RepeatWhile):
        return (step.predicate,), ()
    if isinstance(step, Switch):
        return (step.control,), ()
    return (), ()


def vectors_of(step: Step) -> tuple[TileVector, ...]:
    """Every tile vector that a step itself holds."""
    found: list[TileVector | None] = []
    if isinstance(step, Execute):
        for group in step.compute_set.vertices:
            found += [group.count_by_tile, group.cycles_by_tile, group.flops_by_tile]
    elif isinstance(step, Exchange):
        found += [step.sent_by_tile, step.received_by_tile, step.messages_by_tile]
    elif isinstance(step, GlobalExchange):
        found += [step.sent_by_tile, step.received_by_tile]
    elif isinstance(step, StreamCopy):
        found.append(step.bytes_by_tile)
    return tuple(vector for vector in found if vector is not None)


def traffic_of(step: Step) -> tuple[TileVector, ...]:
    """The vectors whose non-zero tiles take part in a step."""
    if isinstance(step, Execute):
        return tuple(group.count_by_tile for group in step.compute_set.vertices)
    if isinstance(step, Exchange | GlobalExchange):
        return (step.sent_by_tile, step.received_by_tile)
    if isinstance(step, StreamCopy):
        return (step.bytes_by_tile,)
    return ()
