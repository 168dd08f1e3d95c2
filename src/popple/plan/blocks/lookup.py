"""The search for the split of an indexed read or write of table rows.

Three things are cut over the tiles: the rows of the table, its columns, and the
indices. Cut rows leave a candidate of every range, of which a second stage takes the
right one; shares of the indices need copies of the table to read from, and make partial
tables to write to, which are added up. As PopLibs popops/DynamicSlice.cpp (release 2.0)
plans it, the split serves reads and writes of a table alike and is the one that takes
the least memory, what is always live counted ten times. In: a Lookup and
a Chip. Out: splits with their cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from popple.graph import DType
from popple.plan.conv.splits import distinct_splits
from popple.plan.conv.vertices import Ints, ceil_of
from popple.target import Chip
from popple.units import ceil_div

INDEX_BYTES = 4
MIN_INDICES_PER_TILE = 32
"""Indices lie on as few tiles as hold so many each."""
ALWAYS_LIVE_WEIGHT = 10
"""What an always-live byte counts if a temporary one counts 1."""
NUM_RANKED = 4


@dataclass(frozen=True)
class Lookup:
    """`num_rows` rows of a table of `table_rows` rows of `columns` elements."""

    table_rows: int
    columns: int
    num_rows: int
    dtype: DType

    @property
    def grain(self) -> int:
        """Columns that are not cut apart: a word of 32 bits."""
        return ceil_div(INDEX_BYTES, self.dtype.num_bytes)


@dataclass(frozen=True)
class Split:
    """How a lookup is cut: ranges of rows, of columns and shares of the indices."""

    rows: int
    columns: int
    shares: int = 1

    @property
    def num_tiles(self) -> int:
        """Tiles that have something to do."""
        return self.rows * self.columns * self.shares

    def __str__(self) -> str:
        text = f"{self.rows} rows x {self.columns} columns"
        return text if self.shares == 1 else f"{text} x {self.shares} shares of indices"


@dataclass(frozen=True)
class Share:
    """What one tile has to do: its part of the indices, of the table's rows, columns.

    It owns `owned_rows` of the rows looked up and `owned_elements` of the table.
    """

    num_indices: int
    rows: int
    columns: int
    owned_rows: int
    owned_elements: int

    @property
    def elements(self) -> int:
        """Elements of the part of the table it works on."""
        return self.rows * self.columns


def share_of(lookup: Lookup, split: Split) -> Share:
    """The largest share."""
    indices = ceil_div(lookup.num_rows, split.shares)
    rows = ceil_div(lookup.table_rows, split.rows)
    # Columns are dealt in words, each of which one tile writes as a whole.
    grains = ceil_div(ceil_div(lookup.columns, lookup.grain), split.columns)
    columns = min(lookup.columns, grains * lookup.grain)
    owned = ceil_div(rows * grains, split.shares) * lookup.grain
    return Share(indices, rows, columns, ceil_div(indices, split.rows), owned)


@lru_cache(maxsize=1024)
def choose_splits(
    lookup: Lookup, chip: Chip, memory_proportion: float
) -> tuple[tuple[int, Split], ...]:
    """The best splits with their cost, best first.

    Those whose temporaries take more than the proportion of a tile come last.
    """
    columns, rows, shares = _list_splits(lookup, chip.num_tiles)
    memory = _Memory(lookup, chip, columns, rows, shares)
    temporary = np.maximum(memory.read_bytes(), memory.write_bytes())
    cost = ALWAYS_LIVE_WEIGHT * memory.always_live_bytes() + temporary
    too_much = temporary > memory_proportion * chip.tile_memory_bytes
    # What does not fit comes last but stays: some plan is always given.
    order = np.lexsort((cost, too_much))[:NUM_RANKED]
    return tuple(
        (int(cost[i]), Split(int(rows[i]), int(columns[i]), int(shares[i])))
        for i in order
    )


def _list_splits(lookup: Lookup, num_tiles: int) -> tuple[Ints, Ints, Ints]:
    """All cuts of columns, rows and indices that use no more tiles than there are.

    A range has two rows at least.
    """
    grains = ceil_div(lookup.columns, lookup.grain)
    most_rows = min(num_tiles, ceil_div(lookup.table_rows, 2))
    column_cuts = distinct_splits(grains, num_tiles)
    row_cuts = distinct_splits(lookup.table_rows, most_rows)
    columns, rows = (m.ravel() for m in np.meshgrid(column_cuts, row_cuts))
    kept = columns * rows <= num_tiles
    columns, rows = columns[kept], rows[kept]
    index_cuts = distinct_splits(lookup.num_rows, num_tiles)
    room = num_tiles // (columns * rows)
    counts = np.searchsorted(index_cuts, room, side="right")
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    shares = index_cuts[np.arange(len(starts)) - starts]
    return np.repeat(columns, counts), np.repeat(rows, counts), shares


class _Memory:
    """Bytes of the fullest tile for many splits at once, by PopLibs' account."""

    def __init__(
        self, lookup: Lookup, chip: Chip, columns: Ints, rows: Ints, shares: Ints
    ) -> None:
        self._cut_rows, self._shares = rows, shares
        self._is_cut, self._is_shared = rows > 1, shares > 1
        size = lookup.dtype.num_bytes
        self._grain_bytes = lookup.grain * size
        self._grain_floats = lookup.grain * DType.F32.num_bytes
        self._grains = ceil_of(ceil_div(lookup.columns, lookup.grain), columns)
        self._rows = ceil_of(lookup.table_rows, rows)
        self._indices = ceil_of(lookup.num_rows, shares)
        self._owned = ceil_of(self._indices, rows)
        least = min(lookup.num_rows, MIN_INDICES_PER_TILE)
        self._index_share = max(least, ceil_div(lookup.num_rows, chip.num_tiles))

    def always_live_bytes(self) -> Ints:
        """Table, rows looked up, indices and the code that exchanges them."""
        table = ceil_of(self._grains * self._rows, self._shares)
        slices = self._owned * self._grains
        sources = ceil_of(self._indices, self._index_share)
        messages = 3 * sources + 2 * self._is_shared * self._shares
        messages += self._is_cut * self._cut_rows
        indices = INDEX_BYTES * self._index_share
        return (table + slices) * self._grain_bytes + indices + 4 * messages

    def read_bytes(self) -> Ints:
        """A copy of the table, candidates, candidates put together, indices."""
        candidates = self._is_cut * self._indices * self._grains * self._grain_bytes
        table = self._is_shared * self._grains * self._rows * self._grain_bytes
        together = self._cut_rows * self._owned * self._grains * self._grain_bytes
        first = table + candidates + INDEX_BYTES * self._indices
        second = candidates + self._is_cut * together + INDEX_BYTES * self._owned
        return np.maximum(first, second)

    def write_bytes(self) -> Ints:
        """Rows as floats, rows sent to every range, partial tables, indices."""
        cast = self._owned * self._grains * 4
        rows = self._is_cut * self._indices * self._grains * self._grain_floats
        partials = self._is_shared * self._rows * self._grains * self._grain_floats
        stages = (cast + rows, rows + partials + INDEX_BYTES * self._indices)
        return np.maximum(np.maximum(*stages), 2 * partials)
