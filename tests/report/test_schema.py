"""The tables are those of the format, column for column."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from popple.report import schema


@pytest.fixture
def empty() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        schema.create_tables(connection)
        yield connection


def columns_of(connection: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    """Name, type, whether NULL is refused, and place in the key."""
    rows = connection.execute(f"PRAGMA table_info({table})")
    return [(name, kind, null, key) for _, name, kind, null, _, key in rows]


def tables_of(connection: sqlite3.Connection) -> set[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    return {name for (name,) in connection.execute(query)}


def test_the_format_has_67_tables(empty: sqlite3.Connection) -> None:
    vendor = {**schema.COMPILATION_TABLES, **schema.EXECUTION_TABLES}
    assert len(vendor) == 67
    assert tables_of(empty) == {*vendor, *schema.POPPLE_TABLES}
    assert all(name.startswith("popple_") for name in schema.POPPLE_TABLES)


def test_key_columns_and_nulls(empty: sqlite3.Connection) -> None:
    assert columns_of(empty, "exchange_regions") == [
        ("id", "INTEGER", 1, 1),
        ("var_id", "INTEGER", 1, 2),
        ("regions", "TEXT", 0, 0),
    ]


def test_columns_are_those_of_a_genuine_file(
    empty: sqlite3.Connection, genuine_path: Path
) -> None:
    with closing(sqlite3.connect(genuine_path)) as genuine:
        for table in tables_of(genuine):
            assert columns_of(empty, table) == columns_of(genuine, table), table
