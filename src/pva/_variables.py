"""Variables of a report: as the program has them, in pieces on tiles, and when live.

In: an open `popple.report.Report`. Out: views of its records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from popple import report as rp

__all__ = [
    "EquivalenceClass",
    "Interval",
    "LoweredVariable",
    "LoweredVariables",
    "Variable",
    "VariableIndex",
]


class Interval(NamedTuple):
    """Liveness steps from `start` up to, not including, `end`."""

    start: int
    end: int


class EquivalenceClass:
    """Variables that are live at the same steps."""

    def __init__(self, record: rp.LivenessClass) -> None:
        self.id = record.id
        self.isAlwaysLive = record.is_always_live
        self.steps = [Interval(*interval) for interval in record.intervals]


class Variable:
    """A variable of the program, or the part of it that is live here.

    Two views are equal if they are of the same variable, whatever part they show.
    """

    def __init__(self, number: int, name: str, size: int) -> None:
        self._id = number
        self.name = name
        self.size = size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variable) and self._id == other._id

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"<pva.Variable {self.name!r}, {self.size} bytes>"


class LoweredVariable:
    """A piece of memory on one tile; part of a variable, or of none."""

    def __init__(
        self,
        record: rp.LoweredVariable,
        equivalence_class: EquivalenceClass | None,
        whole: Variable | None,
    ) -> None:
        self.id = self._id = record.id
        self.name = record.name
        self.bytes = record.num_bytes
        self.tileId = record.tile
        self.offset = record.offset
        self.alignment = record.alignment_bytes
        self.equivalenceClass = equivalence_class
        self.hasUnloweredVar = whole is not None
        self.unloweredVar = whole

    def __repr__(self) -> str:
        return f"<pva.LoweredVariable {self.name!r} on tile {self.tileId}>"


class LoweredVariables:
    """Every piece of memory, if the report has them."""

    def __init__(self, index: VariableIndex) -> None:
        self._index = index

    @property
    def allBriefVars(self) -> list[LoweredVariable]:
        """The pieces on all tiles; none in a report that does not list them."""
        return list(self._index.lowered.values())

    def forTile(self, tile: int) -> list[LoweredVariable]:
        """The pieces on one tile."""
        return [each for each in self._index.lowered.values() if each.tileId == tile]


class VariableIndex:
    """All variables of a report, by what asks for them."""

    def __init__(self, report: rp.Report) -> None:
        self._report = report
        # Programs ask for one tile at all steps, then for the next.
        self._last_tile: tuple[int, Sequence[rp.Variable]] = (-1, ())

    @cached_property
    def classes(self) -> dict[int, EquivalenceClass]:
        """Liveness classes by id."""
        records = self._report.liveness_classes
        return {record.id: EquivalenceClass(record) for record in records}

    @cached_property
    def lowered(self) -> dict[int, LoweredVariable]:
        """Pieces on tiles by id."""
        wholes = _joined(self._report.variables)
        by_id = {whole._id: whole for whole in wholes}
        return {
            record.id: LoweredVariable(
                record,
                self.classes.get(record.class_id),
                None if record.variable_id is None else by_id.get(record.variable_id),
            )
            for record in self._report.lowered_variables
        }

    def always_live(self, tile: int | None = None) -> list[Variable]:
        """Variables that hold data all the time, on all tiles or on one."""
        always = {each.id for each in self.classes.values() if each.isAlwaysLive}
        return self._of_classes(always, tile)

    def transient_at(
        self, step_id: int, tile: int | None = None, chip: int | None = None
    ) -> list[Variable]:
        """Other variables that hold data at a step, on all tiles, one, or one chip."""
        live = {
            record.id
            for record in self._report.liveness_classes
            if not record.is_always_live and record.is_live_at(step_id)
        }
        return self._of_classes(live, tile, chip)

    def _of_classes(
        self, class_ids: set[int], tile: int | None = None, chip: int | None = None
    ) -> list[Variable]:
        records = self._report.variables if tile is None else self._on_tile(tile)
        return _joined(
            record
            for record in records
            if record.class_id in class_ids
            and (chip is None or record.chip in (chip, None))
        )

    def _on_tile(self, tile: int) -> Sequence[rp.Variable]:
        if self._last_tile[0] != tile:
            self._last_tile = (tile, rp.variables_on_tile(self._report, tile))
        return self._last_tile[1]


def _joined(records: Iterable[rp.Variable]) -> list[Variable]:
    """One view a variable, its records of several chips and classes added up."""
    names: dict[int, str] = {}
    sizes: dict[int, int] = {}
    for record in records:
        names[record.id] = record.name
        sizes[record.id] = sizes.get(record.id, 0) + record.num_bytes
    return [Variable(number, names[number], size) for number, size in sizes.items()]
