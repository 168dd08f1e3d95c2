"""Tables of cycle vectors by tile: equal vectors are stored once, referred to by id."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from popple.report.codec import (
    Runs,
    StoredRuns,
    decode_ids,
    encode_rle,
    encode_varints,
)
from popple.report.tables.rows import insert_rows, select_rows

COMPILED = "compilation_cycles_by_tile"
EXECUTED = "cycles_by_tile"
_COLUMNS = ("id", "cycles_by_tile_rle")


class VectorWriter:
    """Collects vectors while other tables are written, then writes its own."""

    def __init__(self) -> None:
        self._id_of_runs: dict[Runs, int] = {}
        self._id_of_blob: dict[bytes, int] = {}
        # By identity, with the vectors themselves so that they stay: steps of equal
        # layers share theirs.
        self._ids_of: dict[int, tuple[Sequence[Runs], bytes]] = {}

    def id_of(self, runs: Runs) -> int:
        """The id under which this vector is stored."""
        # Two lookups: runs find a vector met before without coding it; blobs join
        # vectors whose runs differ in form only.
        key = runs if type(runs) in (tuple, StoredRuns) else tuple(runs)
        found = self._id_of_runs.get(key)
        if found is None:
            blob = encode_rle(key)
            found = self._id_of_blob.setdefault(blob, len(self._id_of_blob))
            self._id_of_runs[key] = found
        return found

    def ids_of(self, vectors: Sequence[Runs]) -> bytes | None:
        """The ids of one vector a chip, as a blob; None for no vectors."""
        if not vectors:
            return None
        known = self._ids_of.get(id(vectors))
        if known is None:
            known = vectors, encode_varints(self._ids(vectors))
            self._ids_of[id(vectors)] = known
        return known[1]

    def _ids(self, vectors: Sequence[Runs]) -> list[int]:
        # Most of a pipeline's vectors are those of idle chips, one object for all.
        ids: dict[int, int] = {}
        for runs in vectors:
            if id(runs) not in ids:
                ids[id(runs)] = self.id_of(runs)
        return [ids[id(runs)] for runs in vectors]

    def insert(self, connection: sqlite3.Connection, table: str) -> None:
        """Write the vectors collected so far."""
        rows = ((number, blob) for blob, number in self._id_of_blob.items())
        insert_rows(connection, table, _COLUMNS, rows)


class VectorReader:
    """The vectors of one table by id."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        rows = select_rows(connection, table, _COLUMNS)
        # Kept coded: most vectors of a large file are never looked at.
        self._runs = {number: StoredRuns(blob or b"") for number, blob in rows}

    def find(self, number: int | None) -> Runs | None:
        """The vector of an id, None for NULL."""
        return None if number is None else self._runs[number]

    def find_all(self, ids: bytes | None) -> tuple[Runs, ...]:
        """The vectors of a blob of ids."""
        return tuple(self._runs[number] for number in decode_ids(ids or b""))
