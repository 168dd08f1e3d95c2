"""Unroll a timed program: the start of every step, loops laid out up to a limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from popple.program import Call, Control, Parallel, Repeat, RepeatWhile, Step
from popple.sim.timing import Timing

IsWhole: TypeAlias = Callable[[Step], bool]
"""Whether a step is to be shown as one span although it has steps inside."""

UNNUMBERED = -1
"""The micro-batch of what belongs to none, or to several."""


class Span(NamedTuple):
    """One or `num_rounds` executions of a step, one after the other.

    `step_id` names a leaf, a step shown whole, or the body of a function or of a loop
    of which `num_rounds` rounds are taken together. `micro_batch` is the number that
    the loops around it have reached.
    """

    step_id: int
    start_cycles: int
    num_rounds: int
    micro_batch: int = UNNUMBERED


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
        # Collected, not yielded: through a generator for each level of the tree, every
        # span would pass ten times.
        self._spans: list[Span] = []

    def spans(self) -> list[Span]:
        """All spans of the program; those of each chip are in order of time."""
        if not self._spans:
            self._step(0, 0, UNNUMBERED)
        return self._spans

    def _step(self, step_id: int, start: int, number: int) -> None:
        step = self._timing.steps[step_id].step
        if not isinstance(step, Control) or self._is_whole(step):
            self._left -= 1
            self._spans.append(Span(step_id, start, 1, _number_in(step, number)))
            return
        parts = tuple(part for part, _ in self._timing.parts[step_id])
        if isinstance(step, Parallel):
            for branch in parts:
                self._step(branch, start, number)
        elif isinstance(step, Repeat):
            self._rounds(parts, step, start, number)
        elif isinstance(step, RepeatWhile):
            loop = Repeat(step.expected_count, step.body)
            self._rounds(parts, loop, start, number)
            in_loop = sum(self._cycles(part) for part in parts) * step.expected_count
            # The last test of the condition, which ends the loop.
            self._step(parts[0], start + in_loop, number)
        elif isinstance(step, Call) and self._left <= 0:
            self._together(parts, 1, start, _number_in(step, number))
        else:
            self._chain(parts, start, _number_in(step, number))

    def _chain(self, parts: tuple[int, ...], start: int, number: int) -> None:
        for part in parts:
            self._step(part, start, number)
            start += self._cycles(part)

    def _rounds(
        self, parts: tuple[int, ...], loop: Repeat, start: int, number: int
    ) -> None:
        one_round = sum(self._cycles(part) for part in parts)
        for index in range(loop.count):
            if self._left <= 0:
                inside = UNNUMBERED if loop.micro_batches else number
                self._together(parts, loop.count - index, start, inside)
                return
            self._chain(parts, start, _number_of(loop, index, number))
            start += one_round

    def _together(
        self, parts: tuple[int, ...], count: int, start: int, number: int
    ) -> None:
        for part in parts:
            self._spans.append(Span(part, start, count, number))
            start += self._cycles(part) * count

    def _cycles(self, step_id: int) -> int:
        return self._timing.costs[step_id].cycles


def _number_of(loop: Repeat, index: int, outer: int) -> int:
    """The first micro-batch of a round; a loop over other things changes nothing."""
    if not loop.micro_batches:
        return outer
    return max(outer, 0) + loop.first_micro_batch + index * loop.micro_batches


def _number_in(step: Step, outer: int) -> int:
    """The micro-batch of a step: a call of a stage has a number of its own."""
    if not isinstance(step, Call) or step.micro_batch < 0:
        return outer
    return max(outer, 0) + step.micro_batch
