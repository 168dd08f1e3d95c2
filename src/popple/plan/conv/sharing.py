"""Sharing: the tiles of a chip dealt to convolutions that run side by side.

As in graphcore/poplibs lib/poplin/ConvPlan.cpp (getParallelMultiPlan): the largest one
gets as few tiles as keep it near its best, smaller ones as few as let no phase of
theirs take longer than its, the second largest what is left. In: problems with the
memory they may take. Out: a `Share` of the tiles for each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from popple.plan.conv.problem import ConvProblem
from popple.plan.conv.search import Solution, find_choice
from popple.plan.opplan import Share
from popple.target import Chip

# Tiles kept for each of the others, and how much longer the largest may take for each.
RESERVED_TILES = 50
CYCLE_BACK_OFF = 0.1

# Shares are multiples of it, to search less.
_GRAIN_TILES = 8

Reference = tuple[int, ...]


@dataclass(frozen=True)
class Rival:
    """A problem that wants tiles, and the memory its plan may take."""

    problem: ConvProblem
    memory_proportion: float

    def plan_on(
        self, chip: Chip, num_tiles: int, reference: Reference = ()
    ) -> Solution:
        """The best plan on so many tiles."""
        part = replace(chip, num_tiles=num_tiles)
        memory = self.memory_proportion
        return find_choice(self.problem, part, memory, reference).best


@dataclass(frozen=True)
class SharingOptions:
    """Tiles kept for each of the others; how much longer the largest may take for it.

    As in PopLibs, with its names: perConvReservedTiles, cycleBackOff.
    """

    reserved_tiles: int = RESERVED_TILES
    cycle_back_off: float = CYCLE_BACK_OFF


def share_tiles(
    rivals: Sequence[Rival], chip: Chip, options: SharingOptions | None = None
) -> list[Share]:
    """Tiles for each rival, in their order."""
    options = options or SharingOptions()
    order = sorted(range(len(rivals)), key=lambda i: rivals[i].problem.num_macs)
    *smaller, largest = order
    reserved = min(options.reserved_tiles, max(1, chip.num_tiles // len(order)))
    most = chip.num_tiles - reserved * len(smaller)
    # Every rival beside the largest one may cost it so much more time.
    slack = 1 + options.cycle_back_off * len(smaller)
    shares = {largest: _share_of_largest(rivals[largest], chip, most, slack)}
    first = shares[largest].num_tiles
    reference = rivals[largest].plan_on(chip, first).cost.by_cause
    for number, index in enumerate(smaller):
        waiting = len(smaller) - 1 - number
        most = chip.num_tiles - first - reserved * waiting
        count = _fewest(rivals[index], chip, most, reference) if waiting else most
        shares[index] = Share(first, count, reference)
        first += count
        plan = rivals[index].plan_on(chip, count, reference)
        # Phases of all are merged: each lasts as long as the longest so far.
        reference = tuple(map(max, reference, plan.cost.by_cause))
    return [shares[index] for index in range(len(rivals))]


def _share_of_largest(rival: Rival, chip: Chip, most: int, slack: float) -> Share:
    """As few tiles as do not make it much slower than all that are not reserved."""
    limit = rival.plan_on(chip, most).cycles * slack
    return Share(0, _bisect(most, lambda n: rival.plan_on(chip, n).cycles <= limit))


def _fewest(rival: Rival, chip: Chip, most: int, reference: Reference) -> int:
    """As few tiles as do not exceed the reference more than with all of them."""
    least = rival.plan_on(chip, most, reference).cost.excess(reference)

    def suffices(num_tiles: int) -> bool:
        return rival.plan_on(chip, num_tiles, reference).cost.excess(reference) <= least

    return _bisect(most, suffices)


def _bisect(most: int, suffices: Callable[[int], bool]) -> int:
    """The least number of grains that suffices, if more always do; `most` does."""
    # The last grain, with which it is `most`, need not be tried.
    tried = range(_GRAIN_TILES, most, _GRAIN_TILES)
    return min(most, (bisect_left(tried, True, key=suffices) + 1) * _GRAIN_TILES)
