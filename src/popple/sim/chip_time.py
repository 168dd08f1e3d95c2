"""Where the time of every chip goes: each cycle of a run in exactly one class.

In: the timing of a program. Out: for every chip, the cycles it computes, exchanges
within itself, sends over links, waits for the host, waits in syncs, and idles while
others work (the bubbles of a pipeline). They add up to the cycles of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from popple.program import Exchange, Execute, GlobalExchange, Parallel, StreamCopy
from popple.sim.leaves import LeafTime
from popple.sim.timing import Timing

_Sums = dict[int, tuple[int, ...]]
"""Cycles of compute, exchange, links, host and sync by chip, for chips that have any"""

_PLACES: Mapping[type, int] = {
    Execute: 0,
    Exchange: 1,
    GlobalExchange: 2,
    StreamCopy: 3,
}
_SYNC = 4


@dataclass(frozen=True)
class ChipTime:
    """The cycles of a run on one chip by class."""

    compute_cycles: int = 0
    exchange_cycles: int = 0
    link_cycles: int = 0
    host_cycles: int = 0
    sync_cycles: int = 0
    bubble_cycles: int = 0

    @property
    def cycles(self) -> int:
        """All of them: the length of the run."""
        return self.busy_cycles + self.bubble_cycles

    @property
    def busy_cycles(self) -> int:
        """The cycles in which the chip takes part in a step."""
        return (
            self.compute_cycles
            + self.exchange_cycles
            + self.link_cycles
            + self.host_cycles
            + self.sync_cycles
        )


def time_by_chip(timing: Timing) -> tuple[ChipTime, ...]:
    """The time of every chip in one run."""
    whole = _Walk(timing).sums_of(0)
    nothing = (0,) * (_SYNC + 1)
    return tuple(
        ChipTime(*whole.get(chip, nothing), bubble_cycles=timing.cost.cycles - busy)
        for chip, busy in enumerate(timing.busy_by_chip[0])
    )


class _Walk:
    """Sums of steps with everything inside; functions and loops are seen once."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._known: dict[int, _Sums] = {}
        # By identity: layers that do the same share the times of their leaves.
        self._leaves: dict[tuple[int, int, int], _Sums] = {}

    def sums_of(self, step_id: int) -> _Sums:
        """Cycles of one execution of a step."""
        if step_id not in self._known:
            self._known[step_id] = self._find(step_id)
        return self._known[step_id]

    def _find(self, step_id: int) -> _Sums:
        timing = self._timing
        step, leaf = timing.steps[step_id].step, timing.leaf_times[step_id]
        if leaf is not None:
            place = _PLACES.get(type(step), _SYNC)
            return self._of_leaf(place, leaf, timing.busy_by_chip[step_id])
        found: _Sums = {}
        for part, times in timing.parts[step_id]:
            for chip, sums in self.sums_of(part).items():
                done = sums if times == 1 else tuple(each * times for each in sums)
                before = found.get(chip)
                if before is None:
                    found[chip] = done
                elif isinstance(step, Parallel):
                    # Traffic beside compute takes no time of its own: the longer of
                    # the two is what the chip waits for.
                    found[chip] = max(before, done, key=sum)
                else:
                    found[chip] = _added(before, done)
        return found

    def _of_leaf(self, place: int, leaf: LeafTime, busy: tuple[int, ...]) -> _Sums:
        key = place, id(leaf), id(busy)
        if (known := self._leaves.get(key)) is None:
            known = {c: _split(place, leaf, b) for c, b in enumerate(busy) if b}
            self._leaves[key] = known
        return known


def _split(place: int, leaf: LeafTime, busy: int) -> tuple[int, ...]:
    """The cycles of a leaf on a chip, its sync apart from what follows."""
    sums = [0] * (_SYNC + 1)
    sums[_SYNC] = min(leaf.cost.sync_cycles, busy)
    sums[place] += busy - sums[_SYNC]
    return tuple(sums)


def _added(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(first, second, strict=True))
