"""Memory of a report: bytes by tile and category, variables, liveness."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from popple.program import (
    Category,
    Program,
    TileVector,
    add_all,
    busy_chips,
    combine,
)
from popple.report import (
    LivenessClass,
    LivenessDelta,
    LivenessStep,
    MemoryByCategory,
    MemoryByTile,
    Variable,
    number_classes,
)
from popple.sim import Liveness, Memory, Simulation


def record_memory(memory: Memory) -> MemoryByTile:
    """Bytes of every tile: total, always live, transient, interleaved, overflowed."""
    interleaved = memory.interleaved
    return MemoryByTile(
        total_bytes=memory.total.runs,
        total_with_gaps_bytes=memory.total_with_gaps.runs,
        always_live_bytes=memory.always_live_bytes.runs,
        transient_peak_bytes=memory.transient_bytes.runs,
        interleaved_bytes=interleaved.runs,
        # Gaps lie below interleaved data (`sim/elements.py`), so they belong to the
        # plain region.
        interleaved_with_gaps_bytes=interleaved.runs,
        non_interleaved_bytes=_without(memory.total, interleaved).runs,
        non_interleaved_with_gaps_bytes=_without(
            memory.total_with_gaps, interleaved
        ).runs,
        overflowed_bytes=memory.overflow_by_tile.runs,
        overflowed_with_gaps_bytes=memory.overflow_by_tile.runs,
    )


def record_categories(memory: Memory) -> Iterator[MemoryByCategory]:
    """Bytes of every category when the tile is fullest.

    Only variables are ever interleaved, so the interleaved bytes are theirs.
    """
    nothing = TileVector.zeros(len(memory.total)).runs
    for category, total in memory.by_category.items():
        interleaved = TileVector.zeros(len(total))
        if category is Category.VARIABLE:
            # The interleaved peak and the peak of the tile may be at different steps:
            # the share never exceeds the bytes of the category.
            interleaved = combine(min, [total, memory.interleaved])
        # Overlapped bytes are those that share an address over time. Without addresses
        # all bytes at the peak count as not overlapped.
        yield MemoryByCategory(
            category=category.value,
            interleaved=interleaved.runs,
            interleaved_overlapped=nothing,
            non_interleaved=_without(total, interleaved).runs,
            non_interleaved_overlapped=nothing,
            overflowed=nothing,
            overflowed_overlapped=nothing,
        )


def _without(total: TileVector, part: TileVector) -> TileVector:
    return combine(lambda values: max(values[0] - values[1], 0), [total, part])


def record_variables(
    program: Program, liveness: Liveness, memory: Memory
) -> tuple[list[Variable], list[LivenessClass]]:
    """Variables with the classes of steps at which they are live.

    Code and state are variables of the format too, one for each category.
    """
    intervals = {
        # The format's intervals exclude their end.
        name: tuple((first, last + 1) for first, last in liveness.intervals[name])
        for name in liveness.intervals
    }
    # Variables of a graph come first, so that an index below their number finds the
    # same variable in the program.
    rest = _code_and_state(program, liveness, memory)
    vectors = [(n, v.bytes_by_tile) for n, v in program.variables.items()] + rest
    patterns = [intervals.get(name) for name in program.variables]
    patterns += [None] * len(rest)
    classes = number_classes(patterns)
    variables = [
        part
        for index, (name, vector) in enumerate(vectors)
        for part in _on_chips(index, name, vector, classes[patterns[index]], program)
    ]
    return variables, list(classes.values())


def _on_chips(
    index: int, name: str, vector: TileVector, live: LivenessClass, program: Program
) -> Iterator[Variable]:
    """What of a variable lies on each chip that has any of it."""
    for chip, here in _by_chip(vector, program.tiles_per_chip):
        yield Variable(index, name, here.total, live.id, chip, here.runs)


# Variables of repeated layers lie alike. The limit bounds memory.
@lru_cache(maxsize=16384)
def _by_chip(vector: TileVector, size: int) -> tuple[tuple[int, TileVector], ...]:
    """What of a vector lies on each chip of `size` tiles that has any of it."""
    chips = busy_chips(vector, size)
    if len(vector) == size:
        return tuple((chip, vector) for chip in chips)
    # Vectors keep the length of all chips, whichever chip holds the variable: readers
    # index them by global tile.
    return tuple(
        (
            chip,
            vector.part(chip * size, (chip + 1) * size).shifted(
                chip * size, len(vector)
            ),
        )
        for chip in chips
    )


def _code_and_state(
    program: Program, liveness: Liveness, memory: Memory
) -> list[tuple[str, TileVector]]:
    """Always-live bytes that belong to no variable, by the name of their category."""
    held: dict[Category, list[TileVector]] = {}
    for name in liveness.always_live:
        variable = program.variables[name]
        held.setdefault(variable.category, []).append(variable.bytes_by_tile)
    rest = {
        category.value: _without(total, add_all(held.get(category, ()), len(total)))
        for category, total in memory.always_live.items()
    }
    return [(name, vector) for name, vector in rest.items() if not vector.is_zero]


def record_liveness_steps(simulation: Simulation) -> list[LivenessStep]:
    """One step of the liveness clock for every numbered step."""
    return [
        LivenessStep(
            row.id, row.id, row.parent_id if row.parent_id >= 0 else None, row.path
        )
        for row in simulation.steps
    ]


def record_liveness_deltas(liveness: Liveness) -> list[LivenessDelta]:
    """Where the transient memory of a chip changes, and by how much."""
    taken = liveness.transient_bytes
    deltas = np.diff(taken, axis=0, prepend=0)
    return [
        LivenessDelta(int(chip), int(step), int(deltas[step, chip]))
        for step, chip in zip(*np.nonzero(deltas), strict=True)
    ]
