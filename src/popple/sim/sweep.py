"""The transient memory of every tile, step by step and at its fullest.

Tiles between two neighbouring ends of runs are alike, so a sweep over the steps keeps
one number for each such segment, not for each tile: it costs the same on a chip of any
size.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from popple.program import Category, TileVector, Variable
from popple.sim.liveness import Interval

Counts: TypeAlias = NDArray[np.int64]
Spread: TypeAlias = tuple[slice, Counts]
"""(segments concerned, bytes on a tile of each)"""


@dataclass(frozen=True)
class Peak:
    """The most bytes of transient variables that every tile has at once.

    `step_by_tile` is the step at which a tile first has that many; `by_category` tells
    what they are then.
    """

    bytes_by_tile: TileVector
    step_by_tile: TileVector
    by_category: Mapping[Category, TileVector]


def find_peak(
    variables: Sequence[Variable],
    intervals: Mapping[str, Sequence[Interval]],
    num_tiles: int,
) -> Peak:
    """The peak of the given variables, each live during its intervals."""
    return Sweep(variables, intervals, num_tiles).peak()


class Sweep:
    """Variables that live during intervals of steps, and what they take when.

    `others` are vectors that will be compared with what is found.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        intervals: Mapping[str, Sequence[Interval]],
        num_tiles: int,
        others: Sequence[TileVector] = (),
    ) -> None:
        # Many variables are laid out alike.
        vectors = dict.fromkeys([*(v.bytes_by_tile for v in variables), *others])
        self._segments = _Segments.of(vectors, num_tiles)
        self._spreads = {each: self._segments.spread(each) for each in vectors}
        self._lives = self._lives_of(variables, intervals)

    def _lives_of(
        self,
        variables: Iterable[Variable],
        intervals: Mapping[str, Sequence[Interval]],
    ) -> list[_Life]:
        return [
            _Life(variable.category, *self._spreads[variable.bytes_by_tile], *interval)
            for variable in variables
            for interval in intervals.get(variable.name, ())
        ]

    def of_some(
        self,
        variables: Iterable[Variable],
        intervals: Mapping[str, Sequence[Interval]],
    ) -> Sweep:
        """A sweep over some of the variables, in the same segments."""
        # Shares segments and spreads, which are the costly part, so that counts of both
        # sweeps can be subtracted.
        part = copy.copy(self)
        part._lives = self._lives_of(variables, intervals)
        return part

    def spread(self, vector: TileVector) -> Spread:
        """A vector of a variable or of the others, segment by segment."""
        return self._spreads[vector]

    def zeros(self) -> Counts:
        """Nothing, in every segment."""
        return np.zeros(len(self._segments.bounds) - 1, dtype=np.int64)

    def to_vector(self, values: Counts) -> TileVector:
        """The values of all segments, tile by tile."""
        return self._segments.to_vector(values)

    def at(self, step_ids: Iterable[int]) -> Iterator[tuple[int, Counts]]:
        """(step, bytes in every segment during it) in order; good until the next."""
        wanted = sorted(step_ids)
        current, events = self.zeros(), _events(_seen(self._lives, wanted))
        event = next(events, None)
        for step_id in wanted:
            # `current` is changed in place from one step to the next; copying it for
            # each step would cost segments times steps.
            while event is not None and event[0] <= step_id:
                _apply(event, current)
                event = next(events, None)
            yield step_id, current

    def peak(self) -> Peak:
        """The fullest step of every tile and what it holds then."""
        highest, at_step = self._highest()
        by_category = _held_at(at_step, self._lives)
        return Peak(
            self.to_vector(highest),
            self.to_vector(at_step),
            {category: self.to_vector(held) for category, held in by_category.items()},
        )

    def _highest(self) -> tuple[Counts, Counts]:
        """The most bytes in every segment, and the first step with that many."""
        current, highest, at_step = self.zeros(), self.zeros(), self.zeros()
        for event in _events(self._lives):
            _apply(event, current)
            step_id, _, begun = event
            if begun:
                # Only where something was added can there be a new peak.
                low = min(life.where.start for life in begun)
                high = max(life.where.stop for life in begun)
                grown = np.flatnonzero(current[low:high] > highest[low:high]) + low
                highest[grown] = current[grown]
                at_step[grown] = step_id
        return highest, at_step


class _Life(NamedTuple):
    """One interval of one variable: which segments, how much, from when to when."""

    category: Category
    where: slice
    values: Counts
    first: int
    last: int


_Event: TypeAlias = tuple[int, list[_Life], list[_Life]]
"""(step, lives that ended before it, lives that begin with it)"""


@dataclass(frozen=True)
class _Segments:
    """The tiles cut into runs on which every swept variable is constant."""

    bounds: Counts

    @classmethod
    def of(cls, vectors: Iterable[TileVector], num_tiles: int) -> _Segments:
        ends = {0, num_tiles}
        for vector in vectors:
            tile = 0
            for count, _ in vector.runs:
                tile += count
                ends.add(tile)
        return cls(np.array(sorted(ends), dtype=np.int64))

    def spread(self, vector: TileVector) -> Spread:
        """The part of a vector that is not 0, segment by segment."""
        counts = np.array([count for count, _ in vector.runs], dtype=np.int64)
        values = np.array([value for _, value in vector.runs], dtype=np.int64)
        ends = np.searchsorted(self.bounds, counts.cumsum())
        used = np.flatnonzero(values)
        if not used.size:
            return slice(0, 0), values[:0]
        widths = np.diff(ends, prepend=0)[used[0] : used[-1] + 1]
        first, stop = int(ends[used[0]] - widths[0]), int(ends[used[-1]])
        return slice(first, stop), np.repeat(values[used[0] : used[-1] + 1], widths)

    def to_vector(self, values: Counts) -> TileVector:
        widths = np.diff(self.bounds)
        return TileVector.of(zip(widths.tolist(), values.tolist(), strict=True))


def _events(lives: Sequence[_Life]) -> Iterator[_Event]:
    """All changes, in the order of the steps."""
    begun: dict[int, list[_Life]] = defaultdict(list)
    ended: dict[int, list[_Life]] = defaultdict(list)
    for life in lives:
        begun[life.first].append(life)
        ended[life.last + 1].append(life)
    for step_id in sorted(begun.keys() | ended.keys()):
        yield step_id, ended.get(step_id, []), begun.get(step_id, [])


def _seen(lives: Iterable[_Life], step_ids: Sequence[int]) -> list[_Life]:
    """The lives during which one of the steps, given in order, is run."""
    # Most variables live for a few steps only.
    where = [*step_ids, math.inf]
    return [
        life for life in lives if where[bisect_left(where, life.first)] <= life.last
    ]


def _apply(event: _Event, current: Counts) -> None:
    _, ended, begun = event
    for life in ended:
        current[life.where] -= life.values
    for life in begun:
        current[life.where] += life.values


def _held_at(at_step: Counts, lives: Sequence[_Life]) -> dict[Category, Counts]:
    """What every segment holds at the step given for it, by category."""
    categories = dict.fromkeys(life.category for life in lives)
    held = {category: np.zeros_like(at_step) for category in categories}
    # Most lives end before any segment is fullest, or begin later.
    for life in _seen(lives, np.unique(at_step).tolist()):
        steps = at_step[life.where]
        is_live = (steps >= life.first) & (steps <= life.last)
        held[life.category][life.where] += life.values * is_live
    return held
