"""Structure: the control part of a program, and the small pieces it is built of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from popple.program import (
    ComputeSet,
    Execute,
    GlobalExchange,
    Parallel,
    Repeat,
    Sequence,
    Step,
    TileVector,
    combine,
)


@dataclass(frozen=True)
class Structure:
    """The steps of a run and the functions they call."""

    main: Step
    functions: Mapping[str, Step] = field(default_factory=dict[str, Step])


def sequence(steps: Iterable[Step], name: str = "") -> Sequence:
    """Steps one after the other."""
    return Sequence(tuple(steps), name)


def repeat(count: int, body: Step, name: str = "", micro_batches: int = 0) -> Step:
    """`body` so many times; once needs no loop."""
    return body if count == 1 else Repeat(count, body, name, micro_batches)


def by_chip(steps: Mapping[int, list[Step]], name: str = "") -> Step:
    """Steps of several chips at the same time; one chip needs no branches."""
    branches = [sequence(steps[chip], f"chip{chip}") for chip in sorted(steps)]
    if len(branches) == 1:
        return branches[0]
    return Parallel(tuple(branches), name)


def merged(steps: Iterable[Step], name: str) -> GlobalExchange:
    """Exchanges between chips as one, whose flows share the links."""
    parts = [step for step in steps if isinstance(step, GlobalExchange)]
    return GlobalExchange(
        name,
        tuple(flow for part in parts for flow in part.flows),
        _total([part.sent_by_tile for part in parts]),
        _total([part.received_by_tile for part in parts]),
        # All flows start together; the longest way decides the latency.
        num_hops=max(part.num_hops for part in parts),
        replicas=parts[0].replicas,
        is_between_racks=parts[0].is_between_racks,
        reads=tuple(dict.fromkeys(n for part in parts for n in part.reads)),
        writes=tuple(dict.fromkeys(n for part in parts for n in part.writes)),
        op=parts[0].op if len({part.op for part in parts}) == 1 else "",
    )


def _total(vectors: list[TileVector]) -> TileVector:
    return combine(sum, vectors)


def at_once(lists: Iterable[Iterable[Step]], name: str) -> list[Step]:
    """Steps of several ops that have the same form: the first of each at once."""
    return [_joined(list(steps), name) for steps in zip(*lists, strict=True)]


def form_of(steps: Iterable[Step]) -> tuple[object, ...]:
    """Equal for lists of steps that can run at once."""
    return tuple(
        # Loops of unequal length cannot make their turns together.
        (step.count, form_of([step.body]))
        if isinstance(step, Repeat)
        else form_of(step.steps)
        if isinstance(step, Sequence)
        else type(step)
        for step in steps
    )


def _joined(steps: list[Step], name: str) -> Step:
    first = steps[0]
    if len(steps) == 1:
        return first
    if isinstance(first, Repeat):
        bodies = [step.body for step in steps if isinstance(step, Repeat)]
        return Repeat(first.count, _joined(bodies, name), name)
    if isinstance(first, Sequence):
        lists = [step.steps for step in steps if isinstance(step, Sequence)]
        return sequence(at_once(lists, name), name)
    if isinstance(first, GlobalExchange):
        return merged(steps, first.name)
    executed = [step for step in steps if isinstance(step, Execute)]
    # Steps of different kinds: nothing to join, one after the other.
    if len(executed) < len(steps):
        return sequence(steps, name)
    groups = tuple(g for step in executed for g in step.compute_set.vertices)
    return Execute(
        ComputeSet(f"{name}/{executed[0].compute_set.name}", groups),
        tuple(dict.fromkeys(n for step in executed for n in step.reads)),
        tuple(dict.fromkeys(n for step in executed for n in step.writes)),
    )
