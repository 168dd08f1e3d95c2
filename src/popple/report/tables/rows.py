"""Generic tables: map rows of a table to records and back, from a list of columns."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from operator import attrgetter
from typing import Any, Generic, TypeAlias, TypeVar

from popple.report import codec

_MAX_PARAMETERS = 999
"""Of a statement, in every version of SQLite"""

R = TypeVar("R")
Encode: TypeAlias = Callable[[Any], Any]
_Reader: TypeAlias = tuple[Callable[[Any], tuple[Any, ...]], list[tuple[int, Encode]]]


@dataclass(frozen=True)
class ColumnCode:
    """How a value of a record becomes a value SQLite holds, and back."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


PLAIN = ColumnCode(_same, _same)
# SQLite has no booleans: flags are stored as 0 and 1.
FLAG = ColumnCode(int, bool)
VARINTS = ColumnCode(codec.encode_varints, codec.decode_ids)
RLE = ColumnCode(codec.encode_rle, codec.StoredRuns)
PACKED = ColumnCode(codec.encode_packed, codec.decode_packed)
ASCENDING = ColumnCode(codec.encode_ascending, codec.decode_ascending)


def nullable(code: ColumnCode, empty: Any = None) -> ColumnCode:
    """The same code, with NULL in the file for `empty` in the record."""

    def encode(value: Any) -> Any:
        return None if value is None or value == empty else code.encode(value)

    def decode(stored: Any) -> Any:
        return empty if stored is None else code.decode(stored)

    return ColumnCode(encode, decode)


@dataclass(frozen=True)
class Column:
    """An attribute of a record and the column it lies in."""

    attribute: str
    name: str
    code: ColumnCode = PLAIN


def columns(*names: str, **renamed: str) -> tuple[Column, ...]:
    """Plain columns: `columns("id", hertz="clock_frequency")`."""
    same = tuple(Column(name, name) for name in names)
    return same + tuple(Column(ours, theirs) for ours, theirs in renamed.items())


@dataclass(frozen=True)
class RecordTable(Generic[R]):
    """A table each of whose rows is one record; attributes are keywords of it."""

    name: str
    record: Callable[..., R]
    columns: tuple[Column, ...]

    def encode(self, record: R) -> tuple[Any, ...]:
        """The values of a row."""
        taken, coded = self._reader
        values = taken(record)
        if not coded:
            return values
        row = list(values)
        for index, encode in coded:
            row[index] = encode(row[index])
        return tuple(row)

    @cached_property
    def _reader(self) -> _Reader:
        """Takes all attributes of a record at once; the places of those to encode."""
        names = [column.attribute for column in self.columns]
        taken = attrgetter(*names)
        if len(names) == 1:  # it would give a value then, not a row of one
            taken = _row_of_one(taken)
        codes = [column.code for column in self.columns]
        places = [(i, c.encode) for i, c in enumerate(codes) if c is not PLAIN]
        return taken, places

    def decode(self, row: Iterable[Any]) -> R:
        """The record of a row."""
        pairs = zip(self.columns, row, strict=True)
        return self.record(
            **{column.attribute: column.code.decode(value) for column, value in pairs}
        )

    def insert(self, connection: sqlite3.Connection, records: Iterable[R]) -> None:
        """Add a row for every record."""
        names = [column.name for column in self.columns]
        insert_rows(connection, self.name, names, map(self.encode, records))

    def select(self, connection: sqlite3.Connection) -> tuple[R, ...]:
        """Every record of the table, in the order they were written."""
        names = [column.name for column in self.columns]
        return tuple(map(self.decode, select_rows(connection, self.name, names)))


def _row_of_one(taken: Encode) -> Callable[[Any], tuple[Any, ...]]:
    return lambda record: (taken(record),)


def insert_rows(
    connection: sqlite3.Connection,
    table: str,
    names: Iterable[str],
    rows: Iterable[tuple[Any, ...]],
) -> None:
    """Add rows of values to the named columns of a table."""
    # Some columns are words of SQL, such as `order`.
    quoted = [f'"{name}"' for name in names]
    marks = f"({', '.join('?' * len(quoted))})"
    statement = f"INSERT INTO {table} ({', '.join(quoted)}) VALUES "
    # Running a statement takes SQLite as long as adding a row, and a report has a
    # million rows: they are added many at a time.
    size = max(1, _MAX_PARAMETERS // len(quoted))
    together = statement + ", ".join([marks] * size)
    supply = iter(rows)
    while len(batch := list(islice(supply, size))) == size:
        connection.execute(together, tuple(chain.from_iterable(batch)))
    connection.executemany(statement + marks, batch)


def select_rows(
    connection: sqlite3.Connection, table: str, names: Iterable[str]
) -> list[tuple[Any, ...]]:
    """All rows of the named columns; none where the file lacks the table."""
    if not has_table(connection, table):
        return []
    # Between double quotes SQLite would take a missing column for a text.
    quoted = ", ".join(f"[{name}]" for name in names)
    return connection.execute(f"SELECT {quoted} FROM {table} ORDER BY rowid").fetchall()


def has_table(connection: sqlite3.Connection, table: str) -> bool:
    """Whether the file has a table of this name."""
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return connection.execute(query, (table,)).fetchone() is not None
