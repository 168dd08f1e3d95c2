"""Liveness: during which steps every variable has contents.

In: the numbered steps of a program. Out: for every variable the intervals of step
numbers during which its memory is taken. The analysis sees every function once,
whoever calls it: what any caller keeps alive is alive in the whole function. Loops
carry contents from one round to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from popple.program import (
    Category,
    Numbering,
    Program,
    Run,
    TileVector,
    Variable,
    busy_chip_runs,
)
from popple.sim.flow import StepTree, find_uses, live_sets
from popple.sim.straight import straight_intervals

Interval: TypeAlias = tuple[int, int]
"""(first step, last step), both included"""

_GROUP_SIZE = 4096
"""Variables analysed together: keeps the sets short when there are many."""


def is_always_live(variable: Variable) -> bool:
    """Whether a variable keeps its memory for the whole run; constants do."""
    return variable.is_always_live or variable.category is Category.CONSTANT


@dataclass(frozen=True)
class Liveness:
    """When variables live, and what the transient ones take by step and chip.

    `intervals` lists transient variables only; a variable that no executed step uses
    has no interval. `transient_bytes[step, chip]` is the sum over live variables.
    """

    num_steps: int
    always_live: tuple[str, ...]
    intervals: Mapping[str, tuple[Interval, ...]]
    transient_bytes: NDArray[np.int64] = field(compare=False, repr=False)

    @cached_property
    def peak_step_by_chip(self) -> tuple[int, ...]:
        """The first step of every chip at which transient variables take most."""
        return tuple(int(step) for step in self.transient_bytes.argmax(axis=0))

    def is_live(self, name: str, step_id: int) -> bool:
        """Whether a variable has contents during a step."""
        return name in self.always_live or any(
            first <= step_id <= last for first, last in self.intervals.get(name, ())
        )

    def live_at(self, step_id: int) -> tuple[str, ...]:
        """The transient variables that have contents during a step."""
        return tuple(
            name
            for name, intervals in self.intervals.items()
            if any(first <= step_id <= last for first, last in intervals)
        )


def find_liveness(program: Program, steps: Numbering) -> Liveness:
    """The liveness of all variables of a verified program."""
    always: list[str] = []
    transient: list[str] = []
    for name, variable in program.variables.items():
        (always if is_always_live(variable) else transient).append(name)
    tree = StepTree(program, steps)
    found = straight_intervals(transient, tree)
    others = [name for name in transient if name not in found]
    for group, uses in enumerate(find_uses(others, steps, _GROUP_SIZE)):
        names = others[group * _GROUP_SIZE : (group + 1) * _GROUP_SIZE]
        live = live_sets(uses, len(names), tree)
        found.update(_intervals_of(names, live))
    intervals = {name: found[name] for name in transient}
    taken = _transient_bytes(program, intervals, len(steps))
    return Liveness(len(steps), tuple(always), intervals, taken)


def _intervals_of(
    names: Sequence[str], live_sets: Sequence[int]
) -> dict[str, tuple[Interval, ...]]:
    """Intervals of the given variables, from the live set at every step."""
    # Only variables that appear or disappear are looked at: the work grows with the
    # number of intervals, not with steps times variables.
    found: list[list[Interval]] = [[] for _ in names]
    opened = [0] * len(names)
    before = 0
    for step_id, live in enumerate([*live_sets, 0]):
        if live is before:
            continue
        for index in _members(live & ~before):
            opened[index] = step_id
        for index in _members(before & ~live):
            found[index].append((opened[index], step_id - 1))
        before = live
    return {name: tuple(each) for name, each in zip(names, found, strict=True)}


def _members(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _transient_bytes(
    program: Program, intervals: Mapping[str, Sequence[Interval]], num_steps: int
) -> NDArray[np.int64]:
    # Differences first, one sum at the end: an interval of any length makes two.
    steps: list[int] = []
    chips: list[int] = []
    sizes: list[int] = []
    for name, lives in intervals.items():
        by_tile = program.variables[name].bytes_by_tile
        for chip, total in _busy_totals(by_tile, program.tiles_per_chip):
            for first, last in lives:
                steps += (first, last + 1)
                chips += (chip, chip)
                sizes += (total, -total)
    changes = np.zeros((num_steps + 1, program.num_chips), dtype=np.int64)
    np.add.at(changes, (steps, chips), sizes)
    return changes[:-1].cumsum(axis=0)


# Variables of repeated layers lie alike. The limit bounds memory.
@lru_cache(maxsize=16384)
def _busy_totals(vector: TileVector, tiles_per_chip: int) -> tuple[Run, ...]:
    """(chip, sum over its tiles) of the chips that have anything but zeros."""
    totals: dict[int, int] = {}
    for chip, count, value in busy_chip_runs(vector, tiles_per_chip):
        totals[chip] = totals.get(chip, 0) + count * value
    return tuple(totals.items())
