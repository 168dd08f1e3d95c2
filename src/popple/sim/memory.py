"""Memory: bytes of every tile by category, gaps, and whether the program fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from popple.program import (
    Category,
    Numbering,
    Program,
    TileVector,
    Variable,
    add_all,
    chip_maxima,
    combine,
)
from popple.sim.elements import find_gathered, find_reach
from popple.sim.footprint import code_and_state
from popple.sim.liveness import Liveness
from popple.sim.sweep import Sweep, find_peak
from popple.target import Chip
from popple.units import ceil_div

CODE = (
    Category.CONTROL_CODE,
    Category.VERTEX_CODE,
    Category.EXCHANGE_CODE,
    Category.HOST_CODE,
    Category.GLOBAL_CODE,
)
"""Categories that hold instructions, which only the plain region can hold."""


@dataclass(frozen=True)
class Memory:
    """Bytes on every tile, always live and transient.

    `always_live` and `transient` sort the bytes by category; transient ones are those
    at the step at which the tile is fullest (`peak_step_by_tile`). `interleaved` are
    the most bytes that must lie in the interleaved region at once. `reach` is the
    highest address while vertices run that need operands in different memory elements;
    `gathered` that of data which copies bring together, counted from behind the code.
    """

    always_live: Mapping[Category, TileVector]
    transient: Mapping[Category, TileVector]
    peak_step_by_tile: TileVector
    interleaved: TileVector
    reach: TileVector
    gathered: TileVector
    num_chips: int
    tile_memory_bytes: int
    interleaved_start_bytes: int
    memory_element_bytes: int

    @cached_property
    def always_live_bytes(self) -> TileVector:
        """Variables, code and state that keep their place for the whole run."""
        return add_all(self.always_live.values(), len(self.interleaved))

    @cached_property
    def transient_bytes(self) -> TileVector:
        """The most that transient variables take at once."""
        return add_all(self.transient.values(), len(self.interleaved))

    @cached_property
    def by_category(self) -> Mapping[Category, TileVector]:
        """All bytes by category when the tile is fullest."""
        return _added([self.always_live, self.transient], len(self.interleaved))

    @cached_property
    def total(self) -> TileVector:
        """All bytes, gaps excluded."""
        return self.always_live_bytes + self.transient_bytes

    @cached_property
    def total_with_gaps(self) -> TileVector:
        """All bytes and the gaps below interleaved data and between operands.

        Interleaved data lie behind the plain region, full or not.
        """
        # Four lower bounds, none of which implies another: everything packed, the
        # plain region with interleaved data behind it, and the boundaries of elements,
        # of the convolution units and of copies.
        start, size = self.interleaved_start_bytes, self.memory_element_bytes
        return combine(
            lambda each: max(
                each[0],
                start + each[1] if each[1] else 0,
                each[2],
                each[3] + ceil_div(each[4], size) * size if each[3] else 0,
            ),
            [self.total, self.interleaved, self.reach, self.gathered, self._code_bytes],
        )

    @cached_property
    def _code_bytes(self) -> TileVector:
        """Instructions on every tile."""
        return add_all(
            (self.always_live[each] for each in CODE if each in self.always_live),
            len(self.interleaved),
        )

    @cached_property
    def overflow_by_tile(self) -> TileVector:
        """Bytes by which tiles are too small, for data or for code; 0 if they fit."""
        # Instructions are fetched from the plain region only: a tile with room
        # elsewhere still overflows if its code exceeds that region.
        capacity, plain = self.tile_memory_bytes, self.interleaved_start_bytes
        return combine(
            lambda each: max(each[0] - capacity, each[1] - plain, 0),
            [self.total_with_gaps, self._code_bytes],
        )

    @property
    def fits(self) -> bool:
        """Whether no tile overflows."""
        return self.overflow_by_tile.is_zero

    @property
    def peak_by_chip(self) -> tuple[int, ...]:
        """Bytes with gaps on the fullest tile of every chip."""
        total = self.total_with_gaps
        return chip_maxima(total, self.num_chips, len(total) // self.num_chips)


def find_memory(
    program: Program, steps: Numbering, liveness: Liveness, chip: Chip
) -> Memory:
    """The memory of a verified program on chips of one kind."""
    always = [program.variables[name] for name in liveness.always_live]
    transient = {name: program.variables[name] for name in liveness.intervals}
    code = code_and_state(program, steps, liveness.intervals, chip)
    held = [{v.category: v.bytes_by_tile} for v in always]
    always_live = _added([*held, code], program.num_tiles)
    # Code is part of what always lies on a tile, so it comes before the peak.
    stays = add_all(always_live.values(), program.num_tiles)
    variables = list(transient.values())
    sweep = Sweep(variables, liveness.intervals, program.num_tiles, [stays])
    peak = sweep.peak()
    return Memory(
        always_live,
        peak.by_category,
        peak.step_by_tile,
        _interleaved([*always, *variables], liveness, program.num_tiles),
        find_reach(transient, steps, liveness, sweep, stays, chip),
        find_gathered(program, steps, chip),
        program.num_chips,
        chip.tile_memory_bytes,
        chip.interleaved_start_bytes,
        chip.memory_element_bytes,
    )


def _interleaved(
    variables: Iterable[Variable], liveness: Liveness, num_tiles: int
) -> TileVector:
    """Interleaved bytes of every tile, when it has most of them."""
    chosen = [variable for variable in variables if variable.is_interleaved]
    whole_run = {name: ((0, liveness.num_steps),) for name in liveness.always_live}
    lives = {**liveness.intervals, **whole_run}
    return find_peak(chosen, lives, num_tiles).bytes_by_tile


def _added(
    parts: Iterable[Mapping[Category, TileVector]], num_tiles: int
) -> dict[Category, TileVector]:
    """The sum of several sortings by category, in the order of the categories."""
    found: dict[Category, list[TileVector]] = {category: [] for category in Category}
    for part in parts:
        for category, vector in part.items():
            found[category].append(vector)
    return {
        category: add_all(vectors, num_tiles)
        for category, vectors in found.items()
        if vectors
    }
