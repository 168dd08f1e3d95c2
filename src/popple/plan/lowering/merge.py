"""Merging: steps of ops that run side by side become steps of all of them.

In: the steps of each op, on tiles of its own. Out: one list in which phases of the same
name are one phase: compute sets hold the vertices of all, exchanges the traffic of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from popple.program import (
    ComputeSet,
    Exchange,
    Execute,
    Repeat,
    Step,
    TileVector,
    combine,
)
from popple.program import Sequence as Steps

_Part = TypeVar("_Part")


def merge_steps(lists: Sequence[Sequence[Step]]) -> list[Step]:
    """The steps of all lists, those of one name together; each list keeps its order."""
    order: list[str] = []
    found: dict[str, list[Step]] = {}
    for steps in lists:
        position = 0
        for step in steps:
            key = _key(step)
            # A new phase goes behind the one before it in its own list, so that phases
            # that several lists have stay aligned.
            if key not in found:
                order.insert(position, key)
            found.setdefault(key, []).append(step)
            position = order.index(key) + 1
    return [_merge(found[key]) for key in order]


def _key(step: Step) -> str:
    """What the step does, without the name of its op."""
    if isinstance(step, Execute):
        return f"compute {_without_op(step.compute_set.name, step.op)}"
    if isinstance(step, Exchange):
        return f"move {_without_op(step.name, step.op)}"
    return f"{step.count} turns" if isinstance(step, Repeat) else repr(step)


def _without_op(name: str, op: str) -> str:
    """The name of a step without that of its op and the mark of a function's chip."""
    return name.removeprefix(op).partition("/")[2]


def _merge(steps: list[Step]) -> Step:
    if len(steps) == 1:
        return steps[0]
    if executes := _all_of(steps, Execute):
        return _merge_executes(executes)
    if exchanges := _all_of(steps, Exchange):
        return _merge_exchanges(exchanges)
    repeats = _all_of(steps, Repeat)
    bodies = [_body_of(repeat) for repeat in repeats]
    return replace(repeats[0], body=Steps(tuple(merge_steps(bodies))))


def _all_of(steps: Iterable[Step], kind: type[_Part]) -> list[_Part]:
    return [step for step in steps if isinstance(step, kind)]


def _body_of(step: Repeat) -> tuple[Step, ...]:
    return step.body.steps if isinstance(step.body, Steps) else (step.body,)


def _merge_executes(steps: list[Execute]) -> Execute:
    groups = tuple(group for step in steps for group in step.compute_set.vertices)
    first = steps[0]
    return replace(
        first,
        compute_set=ComputeSet(first.compute_set.name, groups),
        reads=_union(step.reads for step in steps),
        writes=_union(step.writes for step in steps),
    )


def _merge_exchanges(steps: list[Exchange]) -> Exchange:
    is_shared = all(step.is_shared for step in steps)
    messages = [m for step in steps if (m := step.messages_by_tile) is not None]
    return replace(
        steps[0],
        sent_by_tile=_total(step.sent_by_tile for step in steps),
        received_by_tile=_total(_received(step, is_shared) for step in steps),
        messages_by_tile=_total(messages) if messages else None,
        is_shared=is_shared,
        reads=_union(step.reads for step in steps),
        writes=_union(step.writes for step in steps),
    )


def _received(step: Exchange, is_shared: bool) -> TileVector:
    """Bytes received at the rate of the merged step: shared buses take half as long."""
    halve: Callable[[int], int] = lambda num_bytes: -(-num_bytes // 2)  # noqa: E731
    # The merged phase is timed as one that shares no buses.
    is_faster = step.is_shared and not is_shared
    return step.received_by_tile.map(halve) if is_faster else step.received_by_tile


def _union(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for each in names for name in each))


def _total(vectors: Iterable[TileVector]) -> TileVector:
    return combine(sum, list(vectors))
