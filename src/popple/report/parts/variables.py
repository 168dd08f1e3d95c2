"""Variables of a report and their liveness classes.

A `Variable` is one of the program as written, an equivalence class is a set of
steps at which variables are live, a `LoweredVariable` is a piece of a variable
on one tile. A variable whose pieces live at different times appears once for
each class.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from popple.errors import ReportError
from popple.quick import quick
from popple.report.codec import Runs

Intervals: TypeAlias = tuple[tuple[int, int], ...]

# Variables that occupy no memory carry this class, which is not in the file.
NO_CLASS_ID = 0


@quick
@dataclass(frozen=True, slots=True)
class LivenessClass:
    """Steps `[from, to)` at which every variable of the class is live."""

    id: int
    is_always_live: bool
    intervals: Intervals = ()

    def __post_init__(self) -> None:
        for start, stop in self.intervals:
            if not 0 <= start <= stop:
                raise ReportError(f"liveness interval [{start}, {stop}) is empty.")

    def is_live_at(self, step_id: int) -> bool:
        """Whether the variables of the class hold data during the step."""
        return self.is_always_live or any(
            start <= step_id < stop for start, stop in self.intervals
        )


@quick
@dataclass(frozen=True, slots=True)
class Variable:
    """Bytes of one program variable that are live at the same steps.

    `chip` is None where the file does not tell; `bytes_by_tile` is empty there.
    """

    id: int
    name: str
    num_bytes: int
    class_id: int
    chip: int | None = None
    bytes_by_tile: Runs = ()
    debug_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class LoweredVariable:
    """A piece of a variable on one tile, with its place and its constraints.

    `flags` is the bit set of the format: 1 allocated, 2 constant, 4 always live,
    8 executable, 16 vertex code, 32 in low memory, 64 in the start section,
    128 in interleaved memory.
    """

    id: int
    tile: int
    name: str
    num_bytes: int
    alignment_bytes: int
    offset: int
    category_id: int
    class_id: int
    flags: int
    variable_id: int | None = None
    element_constraints: tuple[int, ...] = ()
    region_constraints: tuple[int, ...] = ()


@dataclass(frozen=True)
class Interference:
    """Liveness classes that are live together with a class at some step."""

    class_id: int
    interfering_class_ids: tuple[int, ...]


@dataclass(frozen=True)
class AllocationOrder:
    """Ids of the lowered variables of a tile, in the order they were placed."""

    tile: int
    variable_ids: tuple[int, ...]


def number_classes(
    patterns: Iterable[Intervals | None],
) -> dict[Intervals | None, LivenessClass]:
    """One class for each distinct pattern of intervals; None is always live."""
    # Thousands of variables share a few patterns; the file stores each pattern once.
    distinct = dict.fromkeys(patterns)
    return {
        pattern: LivenessClass(index, pattern is None, pattern or ())
        for index, pattern in enumerate(distinct, start=NO_CLASS_ID + 1)
    }
