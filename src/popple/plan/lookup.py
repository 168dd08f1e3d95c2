"""The search for the split of an indexed read or write of table rows.

As PopLibs popops does it, three things are cut over the tiles: the rows of the table,
its columns, and the indices. Few columns a tile make rows cheap to look up; few row
ranges make misses rare; shares of the indices need copies of the table, or make partial
tables that are added up. In: a Lookup and a Chip. Out: splits with their cycles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from popple.graph import DType
from popple.plan.codelets.elementwise import fill_cycles
from popple.plan.codelets.gather import multi_slice_cycles, multi_update_cycles
from popple.plan.codelets.rates import DATA_PATH_BYTES
from popple.plan.tile_reduction import Arithmetic, Stretch, tile_cycles
from popple.target import Chip
from popple.units import ceil_div

INDEX_BYTES = 4


@dataclass(frozen=True)
class Lookup:
    """`num_rows` rows of a table of `table_rows` rows of `columns` elements."""

    table_rows: int
    columns: int
    num_rows: int
    dtype: DType
    is_update: bool = False

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of the table."""
        return self.dtype.num_bytes


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
    """What one tile has to do."""

    found: int
    missed: int
    rows: int
    columns: int
    element_bytes: int

    @property
    def num_indices(self) -> int:
        """Indices the tile looks at."""
        return self.found + self.missed

    @property
    def row_bytes(self) -> int:
        """Bytes of the tile's part of a row."""
        return self.columns * self.element_bytes

    @property
    def table_bytes(self) -> int:
        """Bytes of the tile's part of the table."""
        return self.rows * self.row_bytes


def share_of(lookup: Lookup, split: Split) -> Share:
    """The largest share; indices are taken to be spread evenly over the rows."""
    indices = ceil_div(lookup.num_rows, split.shares)
    found = ceil_div(indices, split.rows)
    return Share(
        found,
        indices - found,
        ceil_div(lookup.table_rows, split.rows),
        ceil_div(lookup.columns, split.columns),
        lookup.element_bytes,
    )


def lookup_cycles(lookup: Lookup, split: Split, num_workers: int) -> int:
    """Tile cycles to look up a share of the indices in a part of the table."""
    share = share_of(lookup, split)
    if not lookup.is_update:
        return multi_slice_cycles(share.found, share.missed, share.columns, num_workers)
    return multi_update_cycles(
        share.found, share.missed, share.columns, lookup.element_bytes, num_workers
    )


def estimate_cycles(lookup: Lookup, split: Split, chip: Chip) -> int:
    """Cycles of the lookup with the exchange and the sums around it."""
    share = share_of(lookup, split)
    received = INDEX_BYTES * share.num_indices
    cycles = lookup_cycles(lookup, split, chip.num_workers)
    if lookup.is_update:
        received += share.num_indices * share.row_bytes
        cycles += _sum_cycles(share, lookup.dtype, split, chip)
    elif split.shares > 1:
        received += share.table_bytes
    return cycles + ceil_div(received, chip.exchange_bytes_per_cycle)


def _sum_cycles(share: Share, dtype: DType, split: Split, chip: Chip) -> int:
    """Partial tables are cleared, exchanged and added up, each tile a part of them."""
    if split.shares == 1:
        return 0
    elements, workers = share.rows * share.columns, chip.num_workers
    owned = ceil_div(elements, split.shares)
    moved = ceil_div(share.table_bytes, chip.exchange_bytes_per_cycle)
    added = sum_cycles(owned, split.shares, dtype, workers)
    return fill_cycles(dtype, elements, workers) + moved + added


def sum_cycles(outputs: int, fan_in: int, dtype: DType, num_workers: int) -> int:
    """Tile cycles to add up `fan_in` partials of every output."""
    stretch = Stretch(1, max(1, outputs), fan_in)
    return tile_cycles(stretch, Arithmetic(dtype, dtype, dtype), num_workers)


def memory_bytes(lookup: Lookup, split: Split) -> int:
    """Temporary bytes on a tile: indices, rows, and a copy of its part of the table."""
    share = share_of(lookup, split)
    rows = share.num_indices if lookup.is_update else share.found
    table = share.table_bytes if split.shares > 1 else 0
    partials = table if lookup.is_update else 0
    return INDEX_BYTES * share.num_indices + rows * share.row_bytes + table + partials


def list_splits(lookup: Lookup, num_tiles: int) -> Iterator[Split]:
    """Columns down to one word and shares in powers of two; rows take what is left."""
    words = ceil_div(lookup.columns * lookup.element_bytes, DATA_PATH_BYTES)
    for columns in _powers_of_two(min(words, num_tiles)):
        for shares in _powers_of_two(min(num_tiles // columns, lookup.num_rows)):
            rows = min(num_tiles // (columns * shares), lookup.table_rows)
            yield Split(max(1, rows), columns, shares)


def _powers_of_two(limit: int) -> Iterator[int]:
    power = 1
    while power <= max(1, limit):
        yield power
        power *= 2


@lru_cache(maxsize=1024)
def choose_split(
    lookup: Lookup, chip: Chip, memory_proportion: float
) -> tuple[tuple[int, Split], ...]:
    """Splits with their cycles, best first; ties go to fewer shares and columns.

    Those whose temporaries do not fit come last, the smallest first.
    """
    limit = memory_proportion * chip.tile_memory_bytes

    def rank(split: Split) -> tuple[int, int, int, int]:
        needed = memory_bytes(lookup, split)
        too_much = needed if needed > limit else 0
        cycles = estimate_cycles(lookup, split, chip)
        return (too_much, cycles, split.shares, split.columns)

    ranked = sorted(list_splits(lookup, chip.num_tiles), key=rank)
    return tuple((estimate_cycles(lookup, split, chip), split) for split in ranked)
