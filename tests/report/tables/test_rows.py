"""Records to rows and back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from popple.report.tables.rows import (
    ASCENDING,
    FLAG,
    PACKED,
    RLE,
    VARINTS,
    Column,
    ColumnCode,
    RecordTable,
    columns,
    nullable,
    select_rows,
)


@dataclass(frozen=True)
class Bird:
    """A record for these tests."""

    name: str
    wing_mm: int
    can_sing: bool = True


BIRDS = RecordTable(
    "birds",
    Bird,
    (*columns("name", wing_mm="wing"), Column("can_sing", "sings", FLAG)),
)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as opened:
        opened.execute("CREATE TABLE birds (sings, wing, name)")
        yield opened


def test_records_come_back_in_order(connection: sqlite3.Connection) -> None:
    birds = (Bird("wren", 50), Bird("stork", 580, can_sing=False))
    BIRDS.insert(connection, birds)
    assert BIRDS.select(connection) == birds
    assert select_rows(connection, "birds", ("sings",)) == [(1,), (0,)]


def test_more_rows_than_a_statement_holds_come_back_in_order(
    connection: sqlite3.Connection,
) -> None:
    # 999 parameters are 333 rows of three columns: two statements and one row alone.
    birds = tuple(Bird(f"bird {number}", number) for number in range(2 * 333 + 1))
    BIRDS.insert(connection, iter(birds))
    assert BIRDS.select(connection) == birds


def test_a_missing_table_has_no_rows(connection: sqlite3.Connection) -> None:
    assert select_rows(connection, "fish", ("name",)) == []


def test_a_missing_column_is_an_error_not_a_text(
    connection: sqlite3.Connection,
) -> None:
    BIRDS.insert(connection, [Bird("wren", 50)])
    with pytest.raises(sqlite3.OperationalError, match="tail"):
        select_rows(connection, "birds", ("tail",))


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (FLAG, True),
        (VARINTS, (0, 300, 5)),
        (RLE, ((3, 1), (1, 2))),
        (PACKED, ((3, 1), (1, 2))),
        (ASCENDING, (1, 2, 9)),
    ],
)
def test_codes_invert(code: ColumnCode, value: object) -> None:
    assert code.decode(code.encode(value)) == value


@pytest.mark.parametrize("empty", [None, ()])
def test_null_stands_for_the_empty_value(empty: object) -> None:
    code = nullable(VARINTS, empty)
    assert code.encode(empty) is None
    assert code.decode(None) == empty
    assert code.decode(code.encode((7,))) == (7,)
