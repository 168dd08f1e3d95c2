"""Liveness by running programs: every way through the steps, access by access.

Slow and simple on purpose. A run is a list of (step number, variables read, variables
written or ended, whether they end). Loops whose count is not known run up to twice,
which shows all that more rounds could.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, islice
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
    root_ids,
)

MAX_RUNS = 500
UNNUMBERED = -1
"""The step number of a loop's test, which has no place of its own."""


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
    steps = program.steps
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
    kinds = [_kind(event, name) for event in run]
    # accumulate: the last access up to each step, and the next one behind it.
    last = list(accumulate(kinds, _newer))
    following = [*accumulate(reversed([*kinds[1:], ""]), _newer)][::-1]
    live: set[int] = set()
    for event, kind, before, after in zip(run, kinds, last, following, strict=True):
        is_used = kind not in ("", "end")
        is_continued = after.startswith("write") and before.endswith("write")
        if is_used or after.startswith("read") or is_continued:
            live.add(event.step_id)
    return live - {UNNUMBERED}


def _newer(known: str, kind: str) -> str:
    return kind or known


def _kind(event: Event, name: str) -> str:
    """What a step does to a variable: first to last, for example read then write."""
    if name in event.writes and event.is_end:
        return "end"
    parts = ["read"] * (name in event.reads) + ["write"] * (name in event.writes)
    return " ".join(parts)


def _runs(steps: Numbering, step_id: int) -> Iterator[Run]:
    """Every run of a step, the step's own beginning first."""
    step = steps[step_id].step
    inner = tuple(child_ids(steps, step_id))
    reads, writes = accesses_of(step)
    begin = Event(step_id, reads, writes, isinstance(step, WriteUndef))
    if isinstance(step, RepeatWhile):
        begin, test = begin._replace(reads=()), begin._replace(step_id=UNNUMBERED)
        condition, body = inner
        for rounds in range(3):
            again = (body, condition, (test,)) * rounds
            yield from _chains(steps, ((begin,), condition, (test,), *again))
    elif isinstance(step, If | Switch):
        for arm in inner:
            yield from _chains(steps, ((begin,), arm))
    elif isinstance(step, Repeat):
        # Three rounds show what the first, a middle and the last one can.
        yield from _chains(steps, ((begin,), *inner * min(step.count, 3)))
    elif isinstance(step, Call):
        yield from _chains(steps, ((begin,), root_ids(steps)[step.function]))
    else:
        yield from _chains(steps, ((begin,), *inner))


def _chains(steps: Numbering, parts: tuple[int | Run, ...]) -> Iterator[Run]:
    """Every run of parts that follow one another; some are known runs already."""
    if not parts:
        yield ()
        return
    first = (parts[0],) if isinstance(parts[0], tuple) else _runs(steps, parts[0])
    for run in first:
        for rest in _chains(steps, parts[1:]):
            yield run + rest
