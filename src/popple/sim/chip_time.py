"""Where the time of every chip goes: each cycle of a run in exactly one class.

In: the timing of a program. Out: for every chip, the cycles it computes, exchanges
within itself, sends over links, waits for the host, waits in syncs, and idles while
others work (the bubbles of a pipeline), which add up to the cycles of the run; and for
every leaf step what of this is its doing, which adds up to the cycles of all chips.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from popple.program import Exchange, Execute, GlobalExchange, Parallel, StreamCopy
from popple.sim.leaves import LeafTime
from popple.sim.timing import Parts, Timing

ClassCycles = tuple[int, int, int, int, int]
"""Cycles of compute, exchange, links, host and sync"""

_PLACES: Mapping[type, int] = {
    Execute: 0,
    Exchange: 1,
    GlobalExchange: 2,
    StreamCopy: 3,
}
_SYNC = 4
NO_CYCLES: ClassCycles = (0, 0, 0, 0, 0)

_Counts = tuple[int, ...]
"""How often a step runs on each chip as what the chip waits for"""


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


@dataclass(frozen=True)
class TimeShares:
    """The cycles of all chips, by chip and by the leaf step that takes them.

    A step that runs beside a longer one takes none of the chip's time.
    """

    by_chip: tuple[ChipTime, ...]
    by_step: Mapping[int, ClassCycles]


def share_time(timing: Timing) -> TimeShares:
    """Who takes the time of every chip in one run."""
    busy_by_chip = timing.busy_by_chip[0]
    chips = [NO_CYCLES for _ in busy_by_chip]
    steps: dict[int, ClassCycles] = {}
    splitter = _Splitter()
    counts = _count_on_chips(timing)
    for step_id, leaf in enumerate(timing.leaf_times):
        if leaf is None:
            continue
        place = _PLACES.get(type(timing.steps[step_id].step), _SYNC)
        shares = splitter.split(place, leaf, timing.busy_by_chip[step_id])
        whole = NO_CYCLES
        for chip, cycles in shares:
            taken = _times(cycles, counts[step_id][chip])
            chips[chip] = _added(chips[chip], taken)
            whole = _added(whole, taken)
        steps[step_id] = whole
    times = (
        ChipTime(*sums, bubble_cycles=timing.cost.cycles - busy)
        for sums, busy in zip(chips, busy_by_chip, strict=True)
    )
    return TimeShares(tuple(times), steps)


class _Splitter:
    """The time of a leaf on each chip; leaves that do the same are split once."""

    def __init__(self) -> None:
        # By identity: layers that do the same share the times of their leaves.
        self._known: dict[tuple[int, int, int], list[tuple[int, ClassCycles]]] = {}

    def split(
        self, place: int, leaf: LeafTime, busy: tuple[int, ...]
    ) -> list[tuple[int, ClassCycles]]:
        """(chip, its cycles by class) of the chips that take part."""
        key = place, id(leaf), id(busy)
        if (known := self._known.get(key)) is None:
            known = [(c, _split(place, leaf, b)) for c, b in enumerate(busy) if b]
            self._known[key] = known
        return known


def _split(place: int, leaf: LeafTime, busy: int) -> ClassCycles:
    """The cycles of a leaf on a chip, its sync apart from what follows."""
    sums = [0] * (_SYNC + 1)
    sums[_SYNC] = min(leaf.cost.sync_cycles, busy)
    sums[place] += busy - sums[_SYNC]
    compute, exchange, links, host, sync = sums
    return compute, exchange, links, host, sync


def _count_on_chips(timing: Timing) -> list[_Counts]:
    """For every step, how often each chip waits for it."""
    num_chips = len(timing.busy_by_chip[0])
    never: _Counts = (0,) * num_chips
    counts: list[_Counts] = [never] * len(timing.parts)
    counts[0] = (1,) * num_chips
    for step_id in _callers_first(timing.parts):
        is_parallel = isinstance(timing.steps[step_id].step, Parallel)
        parts = timing.parts[step_id]
        beside = _beside(parts, timing.busy_by_chip) if is_parallel else {}
        for part, times in parts:
            made = counts[step_id]
            if part in beside:
                made = tuple(0 if c in beside[part] else n for c, n in enumerate(made))
            if times != 1:
                made = tuple(count * times for count in made)
            # Most steps are part of one other: they share what they count.
            known = counts[part]
            counts[part] = made if known is never else _sum(known, made)
    return counts


def _beside(
    parts: Parts, busy_by_chip: Sequence[tuple[int, ...]]
) -> dict[int, set[int]]:
    """The chips on which a part of a Parallel runs beside a longer one.

    Traffic beside compute takes no time of its own: the longer of the two is what the
    chip waits for.
    """
    found: dict[int, set[int]] = {}
    for chip in range(len(busy_by_chip[0])):
        there = [part for part, _ in parts if busy_by_chip[part][chip]]
        if len(there) > 1:
            longest = max(there, key=lambda part: busy_by_chip[part][chip])
            for part in there:
                if part != longest:
                    found.setdefault(part, set()).add(chip)
    return found


def _callers_first(parts: Sequence[Parts]) -> Iterator[int]:
    """All steps that run, each before the steps that it executes."""
    done: set[int] = set()
    order: list[int] = []

    def visit(step_id: int) -> None:
        done.add(step_id)
        for part, _ in parts[step_id]:
            if part not in done:
                visit(part)
        order.append(step_id)

    visit(0)
    return reversed(order)


def _times(cycles: ClassCycles, count: int) -> ClassCycles:
    a, b, c, d, e = cycles
    return a * count, b * count, c * count, d * count, e * count


def _added(first: ClassCycles, second: ClassCycles) -> ClassCycles:
    a, b, c, d, e = first
    p, q, r, s, t = second
    return a + p, b + q, c + r, d + s, e + t


def _sum(first: _Counts, second: _Counts) -> _Counts:
    return tuple(a + b for a, b in zip(first, second, strict=True))
