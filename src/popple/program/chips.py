"""Tile vectors by chip: totals, largest values, and the chips that a step touches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache

from popple.program.parts import children_of, traffic_of
from popple.program.steps import Call, Control, Execute, GlobalExchange, Step
from popple.program.tiles import TileVector


def busy_chip_runs(
    vector: TileVector, tiles_per_chip: int
) -> Iterator[tuple[int, int, int]]:
    """(chip, number of tiles, value) of every run but zeros, cut where a chip ends."""
    # Most vectors concern one chip of many: the zeros of the others are not cut.
    first = 0
    for count, value in vector.runs:
        stop = first + count
        while value and first < stop:
            chip = first // tiles_per_chip
            end = min(stop, (chip + 1) * tiles_per_chip)
            yield chip, end - first, value
            first = end
        first = stop


# Repeated layers have the same vectors. The limit bounds memory.
@lru_cache(maxsize=16384)
def busy_chips(vector: TileVector, tiles_per_chip: int) -> tuple[int, ...]:
    """The chips on which a vector has anything but zeros, in order."""
    runs = busy_chip_runs(vector, tiles_per_chip)
    return tuple(dict.fromkeys(chip for chip, _, _ in runs))


@lru_cache(maxsize=16384)
def _busy_set(vector: TileVector, tiles_per_chip: int) -> frozenset[int]:
    return frozenset(busy_chips(vector, tiles_per_chip))


def chip_parts(
    vector: TileVector, num_chips: int, tiles_per_chip: int
) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The runs of each chip."""
    if num_chips == 1:
        return (vector.runs,)
    # Chips with nothing but zeros share one run: most vectors concern one chip of many.
    idle: tuple[tuple[int, int], ...] = ((tiles_per_chip, 0),)
    parts: list[tuple[tuple[int, int], ...]] = [idle] * num_chips
    for chip, piece in _pieces(vector, tiles_per_chip).items():
        parts[chip] = tuple(piece)
    return tuple(parts)


def _pieces(
    vector: TileVector, tiles_per_chip: int
) -> Mapping[int, list[tuple[int, int]]]:
    """The runs of each chip, those left out that have nothing but zeros."""
    pieces: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    first = 0
    for count, value in vector.runs:
        stop = first + count
        while first < stop:
            chip, offset = divmod(first, tiles_per_chip)
            if not value and not offset and (idle := (stop - first) // tiles_per_chip):
                first += idle * tiles_per_chip
                continue
            end = min(stop, (chip + 1) * tiles_per_chip)
            pieces[chip].append((end - first, value))
            first = end
    return pieces


def chip_totals(
    vector: TileVector, num_chips: int, tiles_per_chip: int
) -> tuple[int, ...]:
    """Sum over the tiles of each chip."""
    if num_chips == 1:
        return (vector.total,)
    totals = [0] * num_chips
    for chip, count, value in busy_chip_runs(vector, tiles_per_chip):
        totals[chip] += count * value
    return tuple(totals)


def chip_maxima(
    vector: TileVector, num_chips: int, tiles_per_chip: int
) -> tuple[int, ...]:
    """Largest value on each chip, at least 0."""
    if num_chips == 1:
        return (vector.maximum,)
    maxima = [0] * num_chips
    for chip, _, value in busy_chip_runs(vector, tiles_per_chip):
        maxima[chip] = max(maxima[chip], value)
    return tuple(maxima)


class ChipFinder:
    """Which chips the steps of one program touch; every step is looked at once.

    A bare Sync or WriteUndef touches none. Calls must resolve and must not recurse.
    """

    def __init__(self, functions: Mapping[str, Step], tiles_per_chip: int) -> None:
        self._functions = functions
        self._tiles_per_chip = tiles_per_chip
        # Steps are told apart by identity: the program keeps them alive, and
        # comparing large vectors would cost more than it saves.
        self._found: dict[int, frozenset[int]] = {}

    def chips_of(self, step: Step) -> frozenset[int]:
        """The chips on which a step or anything inside it has work."""
        # Compute sets of equal layers share their vertices.
        key = id(step.compute_set.vertices if isinstance(step, Execute) else step)
        if (known := self._found.get(key)) is None:
            known = self._found[key] = self._look(step)
        return known

    def _look(self, step: Step) -> frozenset[int]:
        if isinstance(step, Call):
            return self.chips_of(self._functions[step.function])
        size = self._tiles_per_chip
        if isinstance(step, Control):
            return frozenset[int]().union(*map(self.chips_of, children_of(step)))
        chips = frozenset[int]().union(*(_busy_set(v, size) for v in traffic_of(step)))
        # A hand-written exchange may name chips in flows without bytes on their tiles;
        # these chips still wait for it.
        if isinstance(step, GlobalExchange):
            chips = chips.union(chip for flow in step.flows for chip in flow[:2])
        return chips
