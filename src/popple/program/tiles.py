"""TileVector: one number per tile, kept as runs.

Almost everything on a chip is "n tiles with value v". Runs keep the cost of a model
proportional to the number of ops, not ops times tiles.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from popple.errors import ProgramError

Run: TypeAlias = tuple[int, int]
"""(number of tiles, value of each)"""


@dataclass(frozen=True)
class TileVector:
    """Integers over consecutive tiles, run-length coded.

    Runs are normal: counts are positive and neighbours differ, so equal vectors are
    equal objects. Build them with `of`, `constant`, `spread` or `zeros`.
    """

    runs: tuple[Run, ...]

    def __post_init__(self) -> None:
        # Normal form makes `==` and `hash` mean equality of contents, which the caches
        # of planner and simulator rely on.
        previous: int | None = None
        for count, value in self.runs:
            if count <= 0 or value == previous:
                raise ProgramError(f"runs {self.runs} are not in normal form.")
            previous = value

    def __hash__(self) -> int:
        # Kept: vectors are keys of the caches of planner, simulator and reports.
        known = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = hash(self.runs)
        return known

    @classmethod
    def _of_normal(cls, runs: tuple[Run, ...]) -> TileVector:
        """A vector from runs that are normal already, which is not checked again."""
        vector = object.__new__(cls)
        vector.__dict__["runs"] = runs
        return vector

    @classmethod
    def of(cls, runs: Iterable[Run]) -> TileVector:
        """A vector from any runs: empty ones dropped, equal neighbours joined."""
        normal: list[Run] = []
        last: int | None = None
        for count, value in runs:
            if count <= 0:
                continue
            if value == last:
                normal[-1] = (normal[-1][0] + count, value)
            else:
                normal.append((count, value))
                last = value
        return cls._of_normal(tuple(normal))

    @classmethod
    def constant(cls, num_tiles: int, value: int) -> TileVector:
        """`value` on each of `num_tiles` tiles."""
        return cls.of([(num_tiles, value)])

    @classmethod
    def zeros(cls, num_tiles: int) -> TileVector:
        """0 on each of `num_tiles` tiles."""
        return cls.constant(num_tiles, 0)

    @classmethod
    def spread(
        cls, total: int, used_tiles: int, num_tiles: int, grain: int = 1
    ) -> TileVector:
        """`total` dealt in grains over the first `used_tiles` tiles, largest first."""
        # At least one tile is used, so that a total of 0 still gives a vector of the
        # right size.
        grains = -(-total // grain)
        used = max(1, min(used_tiles, num_tiles, max(grains, 1)))
        each, extra = divmod(grains, used)
        short = grains * grain - total  # the last grain may be partly empty
        runs = [(extra, (each + 1) * grain), (used - extra, each * grain)]
        vector = cls.of([*runs, (num_tiles - used, 0)])
        return vector.plus_at(used - 1, -short) if short else vector

    @classmethod
    def from_array(cls, values: NDArray[np.int64]) -> TileVector:
        """A vector from one number per tile."""
        if values.size == 0:
            return cls(())
        # Runs by array arithmetic: a loop over 1472 tiles for each vector would
        # dominate.
        starts = np.flatnonzero(np.diff(values)) + 1
        bounds = [0, *starts.tolist(), int(values.size)]
        return cls.of(
            (stop - start, int(values[start]))
            for start, stop in itertools.pairwise(bounds)
        )

    def to_array(self) -> NDArray[np.int64]:
        """One number per tile."""
        counts = [count for count, _ in self.runs]
        values = np.array([value for _, value in self.runs], dtype=np.int64)
        return np.repeat(values, counts)

    def __len__(self) -> int:
        return sum(count for count, _ in self.runs)

    def __getitem__(self, tile: int) -> int:
        first = 0
        for count, value in self.runs:
            first += count
            if tile < first:
                return value
        raise IndexError(tile)

    def __add__(self, other: TileVector) -> TileVector:
        return combine(lambda values: values[0] + values[1], [self, other])

    @cached_property
    def total(self) -> int:
        """Sum over all tiles."""
        return sum(count * value for count, value in self.runs)

    @property
    def maximum(self) -> int:
        """Largest value, 0 for a vector without tiles."""
        return max((value for _, value in self.runs), default=0)

    @property
    def peak_tile(self) -> int:
        """The first tile that has the largest value, 0 for a vector without tiles."""
        largest, first = self.maximum, 0
        for count, value in self.runs:
            if value == largest:
                return first
            first += count
        return 0

    @property
    def num_nonzero(self) -> int:
        """Number of tiles whose value is not 0."""
        return sum(count for count, value in self.runs if value)

    @property
    def is_zero(self) -> bool:
        """Whether every tile has 0."""
        return all(value == 0 for _, value in self.runs)

    def map(self, function: Callable[[int], int]) -> TileVector:
        """`function` of every value."""
        return TileVector.of((count, function(value)) for count, value in self.runs)

    def scaled(self, factor: int) -> TileVector:
        """Every value times `factor`."""
        if factor == 1:
            return self
        if not factor:
            return TileVector.zeros(len(self))
        # Neighbours that differ still differ.
        return self._of_normal(tuple([(n, value * factor) for n, value in self.runs]))

    def presence(self) -> TileVector:
        """1 on tiles whose value is not 0, else 0."""
        return self.map(lambda value: 1 if value else 0)

    def plus_at(self, tile: int, amount: int) -> TileVector:
        """A copy with `amount` added on one tile."""
        bump = [(tile, 0), (1, amount), (len(self) - tile - 1, 0)]
        return self + TileVector.of(bump)

    def shifted(self, first_tile: int, num_tiles: int) -> TileVector:
        """This vector from `first_tile` on, in a space of `num_tiles` tiles."""
        after = num_tiles - first_tile - len(self)
        if first_tile < 0 or after < 0:
            what = f"{len(self)} tiles from {first_tile} on exceed {num_tiles}."
            raise ProgramError(what)
        return TileVector.of([(first_tile, 0), *self.runs, (after, 0)])

    def rotated(self, offset: int) -> TileVector:
        """Values moved up by `offset` tiles, those past the end to the front."""
        size = len(self)
        if not size or offset % size == 0:
            return self
        cut = size - offset % size
        return TileVector.of([*self.part(cut, size).runs, *self.part(0, cut).runs])

    def part(self, start: int, stop: int) -> TileVector:
        """The values of tiles `start` up to, not including, `stop`."""
        runs: list[Run] = []
        first = 0
        for count, value in self.runs:
            last = first + count
            if last > start:
                if first >= stop:
                    break
                runs.append((min(last, stop) - max(first, start), value))
            first = last
        return TileVector.of(runs)


def combine(
    function: Callable[[Sequence[int]], int], vectors: Sequence[TileVector]
) -> TileVector:
    """`function` of the values of all vectors, tile by tile."""
    if not vectors:
        raise ProgramError("there is no vector to combine.")
    return TileVector.of(
        (count, function(values)) for count, *values in aligned_runs(vectors)
    )


def aligned_runs(vectors: Sequence[TileVector]) -> Iterable[Sequence[int]]:
    """Rows [count, value of each vector] over the common refinement of all runs."""
    first = vectors[0]
    # Most steps work on vectors that are constant or share one layout. These two cases
    # are found by identity and length, without merging the ends of runs.
    others = [vector for vector in vectors if vector.runs is not first.runs]
    if len(first.runs) == 1 and all(len(vector.runs) == 1 for vector in others):
        _check_sizes(vectors)
        return [(first.runs[0][0], *(vector.runs[0][1] for vector in vectors))]
    if not others:
        width = len(vectors)
        return [(count, *(value,) * width) for count, value in first.runs]
    return _refined_runs(vectors)


def _refined_runs(vectors: Sequence[TileVector]) -> list[list[int]]:
    # Every end of a run in any vector cuts all of them. Each vector is then walked once
    # over the common pieces, which costs the sum of all runs, not their product.
    ends = {0}
    for vector in vectors:
        ends.update(itertools.accumulate(count for count, _ in vector.runs))
    _check_sizes(vectors)
    rows = [[stop - start] for start, stop in itertools.pairwise(sorted(ends))]
    for vector in vectors:
        index, left = 0, 0
        for count, value in vector.runs:
            left += count
            while left > 0:
                row = rows[index]
                row.append(value)
                left -= row[0]
                index += 1
    return rows


def _check_sizes(vectors: Sequence[TileVector]) -> None:
    sizes = sorted({len(vector) for vector in vectors})
    if len(sizes) > 1:
        raise ProgramError(f"vectors over {sizes} tiles do not combine.")


class TileSum:
    """A running sum of vectors whose cost is the number of runs added.

    Keeps the steps between neighbouring tiles, so that adding a vector touches
    only the ends of its runs, however many vectors came before.
    """

    def __init__(self, num_tiles: int) -> None:
        self._num_tiles = num_tiles
        self._steps: dict[int, int] = {}

    def add(self, vector: TileVector, factor: int = 1) -> None:
        """Add `factor` times a vector."""
        # A vector as its differences from tile to tile: a run of any length costs two
        # entries.
        first, level = 0, 0
        for count, value in vector.runs:
            if value != level:
                self._step(first, (value - level) * factor)
                level = value
            first += count
        if level:
            self._step(first, -level * factor)

    def add_range(self, start: int, stop: int, value: int) -> None:
        """Add `value` on tiles `start` up to, not including, `stop`."""
        if start < stop:
            self._step(start, value)
            self._step(stop, -value)

    def to_vector(self) -> TileVector:
        """The sum of everything added so far."""
        runs: list[Run] = []
        level, first = 0, 0
        for position in sorted(self._steps):
            runs.append((position - first, level))
            level, first = level + self._steps[position], position
        return TileVector.of([*runs, (self._num_tiles - first, level)])

    def _step(self, position: int, amount: int) -> None:
        if position > self._num_tiles:
            raise ProgramError(f"tile {position} is past {self._num_tiles} tiles.")
        self._steps[position] = self._steps.get(position, 0) + amount


def add_all(vectors: Iterable[TileVector], num_tiles: int) -> TileVector:
    """Sum of vectors, 0 on `num_tiles` tiles if there is none."""
    total = TileSum(num_tiles)
    for vector in vectors:
        total.add(vector)
    return total.to_vector()


def maximum_of(vectors: Sequence[TileVector]) -> TileVector:
    """Tile by tile the largest value."""
    return combine(max, vectors)
