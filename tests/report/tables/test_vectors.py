"""Vector tables hold equal vectors once."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from popple.report.codec import StoredRuns, encode_rle
from popple.report.tables.vectors import EXECUTED, VectorReader, VectorWriter


def stored(writer: VectorWriter) -> VectorReader:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE {EXECUTED} (id, cycles_by_tile_rle)")
        writer.insert(connection, EXECUTED)
        return VectorReader(connection, EXECUTED)


def test_equal_vectors_have_one_id() -> None:
    writer = VectorWriter()
    ids = [writer.id_of(runs) for runs in (((4, 1),), [(4, 1)], ((1, 1), (3, 1)))]
    assert ids == [0, 0, 0]
    assert writer.id_of(StoredRuns(encode_rle([(4, 1)]))) == 0
    assert writer.id_of(((4, 2),)) == 1


def test_vectors_come_back_by_id() -> None:
    writer = VectorWriter()
    ids = writer.ids_of((((4, 1),), ((4, 2),)))
    reader = stored(writer)
    assert reader.find_all(ids) == (((4, 1),), ((4, 2),))
    assert reader.find(1) == ((4, 2),)


def test_no_vectors_are_null() -> None:
    writer = VectorWriter()
    assert writer.ids_of(()) is None
    assert stored(writer).find_all(None) == ()
    assert stored(writer).find(None) is None


def test_an_unknown_id_is_an_error() -> None:
    with pytest.raises(KeyError):
        stored(VectorWriter()).find(3)
