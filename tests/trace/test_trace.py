"""Traces, written in batches and read back."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from popple.errors import ReportError
from popple.trace import (
    Batch,
    Heatmap,
    Histogram,
    Kind,
    Sample,
    Series,
    TracePoint,
    TraceWriter,
    decode_counts,
    encode_counts,
    read_trace,
    spans_of,
)

BEGIN, END, INSTANT = Kind
LOSS = Series("training", "", "loss")
WEIGHTS = Heatmap("weights", "2^x", (-1.0, 0.0, 0.5))


def point(time_ns: int, kind: Kind, label: str, thread_id: int = 1) -> TracePoint:
    return TracePoint(time_ns, thread_id, kind, "App", label)


@pytest.fixture
def writer(tmp_path: Path) -> TraceWriter:
    path = tmp_path / "new" / "a.pvti"
    return TraceWriter(path, process_id=7, command="train.py", epoch_ns=100)


def test_batches_are_read_as_they_were_written(writer: TraceWriter) -> None:
    first = Batch([point(1, BEGIN, "step")], [Sample(LOSS, 2, 0.5)], (), {1: "main"})
    second = Batch(
        [point(3, END, "step"), point(4, INSTANT, "note")],
        [Sample(LOSS, 5, 0.25)],
        [Histogram(WEIGHTS, 6, (3, 0), 2)],
        {1: "main", 9: "loader"},
    )
    writer.append(first)
    writer.append(second)
    trace = read_trace(writer.path)
    assert (trace.process_id, trace.command, trace.epoch_ns) == (7, "train.py", 100)
    assert trace.batch == Batch(
        [*first.points, *second.points],
        [*first.samples, *second.samples],
        list(second.histograms),
        second.thread_names,
    )


def test_a_new_trace_is_empty_and_nothing_else_lies_beside_it(
    writer: TraceWriter,
) -> None:
    assert read_trace(writer.path).batch.points == []
    assert [each.name for each in writer.path.parent.iterdir()] == ["a.pvti"]


def test_half_a_batch_is_never_written(writer: TraceWriter) -> None:
    unwritable: Any = object()
    batch = Batch([point(1, BEGIN, "step")], [Sample(LOSS, 2, unwritable)])
    with pytest.raises(ReportError, match="cannot be written"):
        writer.append(batch)
    assert read_trace(writer.path).batch.points == []


def test_the_documented_table_is_there(writer: TraceWriter) -> None:
    writer.append(Batch(histograms=[Histogram(WEIGHTS, 6, (3, 0))]))
    with sqlite3.connect(writer.path) as connection:
        query = "SELECT bin_quantities FROM HEATMAP_DATA"
        ((blob,),) = connection.execute(query).fetchall()
    connection.close()
    assert decode_counts(blob) == (3, 0)
    assert blob == encode_counts([3, 0])


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "a.pvti"
    with pytest.raises(ReportError, match=r"a\.pvti.*Choose a directory"):
        TraceWriter(path, process_id=1, command="", epoch_ns=0)


def test_missing_foreign_and_broken_files_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="PVTI_OPTIONS"):
        read_trace(tmp_path / "no.pvti")
    (tmp_path / "text.pvti").write_text("no database, but long enough to be looked at")
    with pytest.raises(ReportError, match="corrupt"):
        read_trace(tmp_path / "text.pvti")
    sqlite3.connect(tmp_path / "other.pvti").close()
    (tmp_path / "other.pvti").touch()
    with pytest.raises(ReportError, match="layout of others is not public"):
        read_trace(tmp_path / "other.pvti")


@pytest.mark.parametrize("edges", [(), (1.0,), (1.0, 1.0), (2.0, 1.0)])
def test_edges_must_ascend(edges: tuple[float, ...]) -> None:
    with pytest.raises(ReportError, match="ascending"):
        Heatmap("h", "", edges)


def test_spans_are_nested_as_they_were_open() -> None:
    points = [
        point(0, BEGIN, "outer"),
        point(1, BEGIN, "inner"),
        point(2, INSTANT, "note"),
        point(3, END, "inner"),
        point(5, END, "outer"),
        point(6, BEGIN, "outer"),
    ]
    found = [
        (s.label, s.start_ns, s.duration_ns, s.parent) for s in spans_of(points, 10)
    ]
    assert found == [
        ("outer", 0, 5, None),
        ("inner", 1, 2, 0),
        ("note", 2, 0, 1),
        ("outer", 6, 4, None),  # still open when the trace stops
    ]


def test_ends_find_the_latest_beginning_of_their_own() -> None:
    points = [
        point(0, END, "before the trace"),
        point(1, BEGIN, "a"),
        point(2, BEGIN, "a"),
        point(3, BEGIN, "b"),
        point(4, END, "a"),
        point(5, END, "b"),
        point(6, END, "a"),
    ]
    found = [(s.label, s.start_ns, s.end_ns) for s in spans_of(points, 9)]
    assert found == [("a", 1, 6), ("a", 2, 4), ("b", 3, 5)]
