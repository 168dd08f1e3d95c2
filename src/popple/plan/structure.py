"""Structure: the control part of a program, and the small pieces it is built of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from popple.program import Parallel, Repeat, Sequence, Step


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
