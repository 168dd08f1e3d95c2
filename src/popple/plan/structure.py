"""Structure: the control part of a program, and the small pieces it is built of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from popple.program import (
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


def repeat(count: int, body: Step, name: str = "") -> Step:
    """`body` so many times; once needs no loop."""
    return body if count == 1 else Repeat(count, body, name)


def by_chip(steps: Mapping[int, list[Step]], name: str = "") -> Step:
    """Steps of several chips at the same time; one chip needs no branches."""
    branches = [sequence(steps[chip], f"chip{chip}") for chip in sorted(steps)]
    if len(branches) == 1:
        return branches[0]
    return Parallel(tuple(branches), name)


def merged(steps: Iterable[Step], name: str) -> GlobalExchange:
    """Exchanges between chips of a replica as one, whose flows share the links."""
    parts = [step for step in steps if isinstance(step, GlobalExchange)]
    return GlobalExchange(
        name,
        tuple(flow for part in parts for flow in part.flows),
        _total([part.sent_by_tile for part in parts]),
        _total([part.received_by_tile for part in parts]),
        num_hops=max(part.num_hops for part in parts),
        reads=tuple(dict.fromkeys(n for part in parts for n in part.reads)),
        writes=tuple(dict.fromkeys(n for part in parts for n in part.writes)),
        op=parts[0].op if len(parts) == 1 else "",
    )


def _total(vectors: list[TileVector]) -> TileVector:
    return combine(sum, vectors)
