"""Tables of memory by tile, by category, and of liveness over steps."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from popple.report.codec import array_of
from popple.report.parts.memory import (
    Category,
    LivenessDelta,
    MemoryByCategory,
    MemoryByTile,
    TileMemory,
)
from popple.report.tables.rows import (
    PACKED,
    Column,
    RecordTable,
    columns,
    insert_rows,
    select_rows,
)

# Our names to those of the format, which calls transient bytes "not always live".
_TILE_COLUMNS = {
    "total_bytes": "total",
    "total_with_gaps_bytes": "total_including_gaps",
    "always_live_bytes": "always_live_bytes",
    "transient_peak_bytes": "not_always_live_max_bytes",
    "interleaved_bytes": "interleaved",
    "interleaved_with_gaps_bytes": "interleaved_including_gaps",
    "non_interleaved_bytes": "non_interleaved",
    "non_interleaved_with_gaps_bytes": "non_interleaved_including_gaps",
    "overflowed_bytes": "overflowed",
    "overflowed_with_gaps_bytes": "overflowed_including_gaps",
}

CATEGORIES = RecordTable(
    "var_categories", Category, columns("id", "name", "description")
)

MEMORY_BY_CATEGORY = RecordTable(
    "memory_by_category",
    MemoryByCategory,
    (
        Column("category", "category_id"),
        Column("interleaved", "interleaved_non_overlapped", PACKED),
        Column("interleaved_overlapped", "interleaved_overlapped", PACKED),
        Column("non_interleaved", "non_interleaved_non_overlapped", PACKED),
        Column("non_interleaved_overlapped", "non_interleaved_overlapped", PACKED),
        Column("overflowed", "overflowed_non_overlapped", PACKED),
        Column("overflowed_overlapped", "overflowed_overlapped", PACKED),
    ),
)

_DELTA_TABLE = "memory_not_always_live_by_step_and_ipu"
_DELTA_COLUMNS = ("ipu", "step_id", "delta_bytes")


def insert_memory_by_tile(connection: sqlite3.Connection, memory: MemoryByTile) -> None:
    """Write one row a tile."""
    vectors = [array_of(getattr(memory, ours)).tolist() for ours in _TILE_COLUMNS]
    names = ("tile", *_TILE_COLUMNS.values())
    rows = zip(range(memory.num_tiles), *vectors, strict=True)
    insert_rows(connection, "memory_by_tile", names, rows)


def select_memory_by_tile(connection: sqlite3.Connection, num_tiles: int) -> TileMemory:
    """Read one array over tiles for each column; what is not stored is 0."""
    names = [_TILE_COLUMNS[column.name] for column in fields(TileMemory)]
    # One of the columns may be NULL in genuine files; an array has no place for that.
    listed = ", ".join(f"COALESCE({name}, 0)" for name in names)
    query = f"SELECT {listed} FROM memory_by_tile ORDER BY tile"
    # A file without rows says nothing about tiles: 0 everywhere.
    rows = connection.execute(query).fetchall() or [(0,) * len(names)] * num_tiles
    if len(rows) != num_tiles:
        raise ValueError(f"{len(rows)} of {num_tiles} tiles are there")
    vectors = zip(*rows, strict=True)
    return TileMemory(*(np.array(vector, np.int64) for vector in vectors))


def insert_liveness_deltas(
    connection: sqlite3.Connection, deltas: Sequence[LivenessDelta]
) -> None:
    """Write changes of every chip, then those of all chips together."""
    rows: list[tuple[int | None, int, int]] = [
        (delta.chip, delta.step_id, delta.delta_bytes) for delta in deltas
    ]
    # Rows without a chip are the sum over chips; readers here leave them out.
    totals: defaultdict[int, int] = defaultdict(int)
    for delta in deltas:
        totals[delta.step_id] += delta.delta_bytes
    rows += [(None, step_id, total) for step_id, total in sorted(totals.items())]
    # Changes of two chips may cancel in the sum; the format has no rows of 0.
    changes = [row for row in rows if row[2]]
    insert_rows(connection, _DELTA_TABLE, _DELTA_COLUMNS, changes)


def select_liveness_deltas(connection: sqlite3.Connection) -> tuple[LivenessDelta, ...]:
    """Read the changes of every chip."""
    return tuple(
        LivenessDelta(chip, step_id, delta_bytes)
        for chip, step_id, delta_bytes in select_rows(
            connection, _DELTA_TABLE, _DELTA_COLUMNS
        )
        if chip is not None
    )


def insert_liveness_tiles(connection: sqlite3.Connection, tiles: Sequence[int]) -> None:
    """Write the tiles whose liveness is described variable by variable."""
    rows = list(enumerate(tiles))
    insert_rows(connection, "memory_liveness_tiles", ("position", "tile"), rows)


def select_liveness_tiles(connection: sqlite3.Connection) -> tuple[int, ...]:
    """Read the tiles whose liveness is described variable by variable."""
    rows = select_rows(connection, "memory_liveness_tiles", ("position", "tile"))
    return tuple(tile for _, tile in rows)
