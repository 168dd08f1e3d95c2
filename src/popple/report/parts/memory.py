"""Memory records of a report: bytes by tile, by category, and liveness over steps."""

from __future__ import annotations

from dataclasses import dataclass, fields

from popple.errors import ReportError
from popple.quick import quick
from popple.report.codec import IntArray, Runs, length_of, runs_of


@dataclass(frozen=True)
class MemoryByTile:
    """One run vector over all tiles for each way of counting tile memory.

    Gaps are bytes between variables that nothing uses; overflowed bytes lie past
    the end of the tile, in a program that does not fit.
    """

    total_bytes: Runs
    total_with_gaps_bytes: Runs
    always_live_bytes: Runs
    transient_peak_bytes: Runs
    interleaved_bytes: Runs
    interleaved_with_gaps_bytes: Runs
    non_interleaved_bytes: Runs
    non_interleaved_with_gaps_bytes: Runs
    overflowed_bytes: Runs
    overflowed_with_gaps_bytes: Runs

    def __post_init__(self) -> None:
        lengths = {
            column.name: length_of(getattr(self, column.name))
            for column in fields(self)
        }
        # Vectors are written side by side, one row for each tile.
        if len(set(lengths.values())) > 1:
            raise ReportError(f"memory vectors cover unequal tiles: {lengths}.")

    @property
    def num_tiles(self) -> int:
        """How many tiles are described."""
        return length_of(self.total_bytes)


@dataclass(frozen=True, eq=False)
class TileMemory:
    """`MemoryByTile` as read from a file: one array over all tiles each."""

    # Arrays, because the file has one row for each tile and queries do arithmetic on
    # all; compared by identity, since `==` of arrays is no truth value.
    total_bytes: IntArray
    total_with_gaps_bytes: IntArray
    always_live_bytes: IntArray
    transient_peak_bytes: IntArray
    interleaved_bytes: IntArray
    interleaved_with_gaps_bytes: IntArray
    non_interleaved_bytes: IntArray
    non_interleaved_with_gaps_bytes: IntArray
    overflowed_bytes: IntArray
    overflowed_with_gaps_bytes: IntArray

    def as_runs(self) -> MemoryByTile:
        """The same figures as run vectors."""
        columns = {c.name: runs_of(getattr(self, c.name)) for c in fields(self)}
        return MemoryByTile(**columns)


@dataclass(frozen=True)
class MemoryByCategory:
    """Bytes of one category on every tile, by memory region.

    Overlapped bytes share their place with variables that live at other times,
    so only the non-overlapped columns add up to memory in use.
    """

    category: str
    interleaved: Runs
    interleaved_overlapped: Runs
    non_interleaved: Runs
    non_interleaved_overlapped: Runs
    overflowed: Runs
    overflowed_overlapped: Runs


@dataclass(frozen=True)
class Category:
    """A kind of data in tile memory."""

    id: int
    name: str
    description: str


@quick
@dataclass(frozen=True, slots=True)
class LivenessDelta:
    """By how much transient memory of a chip changes when a step begins."""

    chip: int
    step_id: int
    delta_bytes: int


# Names and order are those of the format: a category's id is its position.
_DESCRIPTIONS = {
    "variable": "data of the program",
    "multiple": "variables of several categories joined into one",
    "controlId": "ids of programs and syncs",
    "message": "data on its way between tiles of a chip",
    "hostMessage": "data on its way to or from the host",
    "globalMessage": "data on its way between chips",
    "rearrangement": "copies of data in another order",
    "outputEdge": "results of vertices before they are exchanged",
    "constant": "constants of the program",
    "hostExchangePacketHeader": "packet headers for the host",
    "globalExchangePacketHeader": "packet headers for other chips",
    "stack": "stacks of supervisor and workers",
    "vertexInstanceState": "fields of vertices",
    "copyDescriptor": "descriptors of copy vertices",
    "vectorListDescriptor": "descriptors of lists of vectors",
    "vertexFieldData": "variable-sized fields of vertices",
    "controlTable": "no longer used",
    "controlCode": "code that runs programs and compute sets",
    "vertexCode": "code of codelets",
    "internalExchangeCode": "code of exchanges within a chip",
    "hostExchangeCode": "code of exchanges with the host",
    "globalExchangeCode": "code of exchanges between chips",
    "instrumentationResults": "measurements",
    "dwarf": "debugging information",
    "sharedCodeStorage": "no longer used",
    "sharedDataStorage": "no longer used",
    "sharedStructureState": "no longer used",
}

CATEGORIES = tuple(
    Category(index, name, text)
    for index, (name, text) in enumerate(_DESCRIPTIONS.items())
)
