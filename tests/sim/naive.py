"""Liveness by running programs: every way through the steps, access by access.

Slow and simple on purpose. A run is a list of (step number, variables read, variables
written or ended, whether they end). Loops whose count is not known run up to twice,
which shows all that more rounds could.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from popple.program import (
    Call,
    If,
    Numbering,
    Program,
    Repeat,
    RepeatWhile,
    Switch,
    WriteUndef,
    accesses_of,
    child_ids,
    number_steps,
    root_ids,
)

MAX_RUNS = 3_000


class Event(NamedTuple):
    """One step as it runs: a leaf, or a choice that looks at its variable."""

    step_id: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    is_end: bool


Run = tuple[Event, ...]


class TooManyRuns(Exception):
    """The program has more ways through it than this can follow."""


def live_steps(program: Program) -> dict[str, set[int]]:
    """For every variable the steps during which it has contents in some run."""
    steps = number_steps(program)
    found: dict[str, set[int]] = {name: set() for name in program.variables}
    runs = list(islice(_runs(steps, 0), MAX_RUNS + 1))
    if len(runs) > MAX_RUNS:
        raise TooManyRuns
    for run in runs:
        for name in program.variables:
            found[name] |= _live_in(run, name)
    return found


def _live_in(run: Run, name: str) -> set[int]:
    """Steps of one run during which a variable is used, or kept for later."""
    accesses = [_kind(event, name) for event in run]
    live: set[int] = set()
    for index, event in enumerate(run):
        later = next((kind for kind in accesses[index + 1 :] if kind), "")
        earlier = next((kind for kind in reversed(accesses[: index + 1]) if kind), "")
        is_used = accesses[index] not in ("", "end")
        is_continued = later.startswith("write") and earlier.endswith("write")
        if is_used or later.startswith("read") or is_continued:
            live.add(event.step_id)
    return live


def _kind(event: Event, name: str) -> str:
    """What a step does to a variable: first to last, for example read then write."""
    if name in event.writes and event.is_end:
        return "end"
    parts = ["read"] * (name in event.reads) + ["write"] * (name in event.writes)
    return " ".join(parts)


def _runs(steps: Numbering, step_id: int) -> Iterator[Run]:
    step = steps[step_id].step
    inner = tuple(child_ids(steps, step_id))
    reads, writes = accesses_of(step)
    own = (Event(step_id, reads, writes, isinstance(step, WriteUndef)),)
    if isinstance(step, Call):
        yield from _runs(steps, root_ids(steps)[step.function])
    elif isinstance(step, Repeat):
        # Three rounds show what the first, a middle and the last round can.
        yield from _chains(steps, inner * min(step.count, 3))
    elif isinstance(step, RepeatWhile):
        yield from _while_runs(steps, inner, own)
    elif isinstance(step, If | Switch):
        for arm in inner:
            yield from (own + run for run in _runs(steps, arm))
    elif inner or not (reads or writes or isinstance(step, WriteUndef)):
        yield from _chains(steps, inner)
    else:
        yield own


def _chains(steps: Numbering, parts: tuple[int, ...]) -> Iterator[Run]:
    if not parts:
        yield ()
        return
    for first in _runs(steps, parts[0]):
        for rest in _chains(steps, parts[1:]):
            yield first + rest


def _while_runs(steps: Numbering, inner: tuple[int, ...], own: Run) -> Iterator[Run]:
    condition, body = inner
    for rounds in range(3):
        for run in _chains(steps, (condition, *(body, condition) * rounds)):
            yield _with_tests(run, own, steps, condition)


def _with_tests(run: Run, own: Run, steps: Numbering, condition: int) -> Run:
    raise NotImplementedError
