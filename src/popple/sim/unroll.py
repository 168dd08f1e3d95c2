"""Unroll a timed program: the start of every step, loops laid out up to a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from popple.program import Call, Control, Parallel, Repeat, RepeatWhile, Step
from popple.sim.timing import Timing

IsWhole: TypeAlias = Callable[[Step], bool]
"""Whether a step is to be shown as one span although it has steps inside."""


class Span(NamedTuple):
    """One or `num_rounds` executions of a step, one after the other.

    `step_id` names a leaf, a step shown whole, or the body of a function or of a loop
    of which `num_rounds` rounds are taken together.
    """

    step_id: int
    start_cycles: int
    num_rounds: int


class Unroller:
    """Lays out the steps of a timed program.

    Rounds of a loop are laid out one by one until `limit` spans exist; then the rounds
    left become one span for each loop, and each call of a function one. So there are
    never many more spans than `limit` and the steps outside loops and functions, and no
    time is lost.
    """

    def __init__(self, timing: Timing, limit: int, is_whole: IsWhole) -> None:
        self._timing = timing
        self._left = limit
        self._is_whole = is_whole

    def spans(self) -> Iterator[Span]:
        """All spans of the program; those of each chip are in order of time."""
        return self._step(0, 0)

    def _step(self, step_id: int, start: int) -> Iterator[Span]:
        step = self._timing.steps[step_id].step
        parts = tuple(part for part, _ in self._timing.parts[step_id])
        if not isinstance(step, Control) or self._is_whole(step):
            self._left -= 1
            yield Span(step_id, start, 1)
        elif isinstance(step, Parallel):
            for branch in parts:
                yield from self._step(branch, start)
        elif isinstance(step, Repeat):
            yield from self._rounds(parts, step.count, start)
        elif isinstance(step, RepeatWhile):
            yield from self._rounds(parts, step.expected_count, start)
            in_loop = sum(self._cycles(part) for part in parts) * step.expected_count
            # The last test of the condition, which ends the loop.
            yield from self._step(parts[0], start + in_loop)
        elif isinstance(step, Call) and self._left <= 0:
            yield from self._together(parts, 1, start)
        else:
            yield from self._chain(parts, start)

    def _chain(self, parts: tuple[int, ...], start: int) -> Iterator[Span]:
        for part in parts:
            yield from self._step(part, start)
            start += self._cycles(part)

    def _rounds(self, parts: tuple[int, ...], count: int, start: int) -> Iterator[Span]:
        one_round = sum(self._cycles(part) for part in parts)
        for index in range(count):
            if self._left <= 0:
                yield from self._together(parts, count - index, start)
                return
            yield from self._chain(parts, start)
            start += one_round

    def _together(
        self, parts: tuple[int, ...], count: int, start: int
    ) -> Iterator[Span]:
        for part in parts:
            yield Span(part, start, count)
            start += self._cycles(part) * count

    def _cycles(self, step_id: int) -> int:
        return self._timing.costs[step_id].cycles
