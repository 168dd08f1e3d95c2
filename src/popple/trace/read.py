"""Read a trace file (`.pvti`) into a `Trace`."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from popple.errors import ReportError
from popple.report.tables.rows import select_rows
from popple.trace import schema
from popple.trace.parts import (
    Batch,
    Heatmap,
    Histogram,
    Kind,
    Sample,
    Series,
    Trace,
    TracePoint,
)


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """The trace in a `.pvti` file."""
    file = Path(path)
    if not file.is_file():
        raise ReportError(
            "no such file.",
            where=str(file),
            remedy="""Run a program with PVTI_OPTIONS='{"enable":"true"}' first.""",
        )
    try:
        # Read only: the program that is traced may still be writing.
        uri = f"{file.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return _read(connection, file)
    except (sqlite3.Error, LookupError, ValueError) as error:
        raise ReportError(
            f"the trace is corrupt ({error}).",
            where=str(file),
            remedy="Trace the program again.",
        ) from error


def _read(connection: sqlite3.Connection, file: Path) -> Trace:
    info = dict(_select(connection, schema.INFO))
    if info.get("format") != schema.FORMAT:
        raise ReportError(
            "this is no trace of Popple's libpvti, and the layout of others is not "
            "public.",
            where=str(file),
            remedy="Trace the program with Popple.",
        )
    return Trace(
        process_id=info["process_id"],
        command=info["command"],
        epoch_ns=info["epoch_ns"],
        batch=Batch(
            points=_points(connection),
            samples=_samples(connection),
            histograms=_histograms(connection),
            thread_names=dict(_select(connection, schema.THREADS)),
        ),
    )


def _select(connection: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    return select_rows(connection, table, schema.COLUMNS[table])


def _points(connection: sqlite3.Connection) -> list[TracePoint]:
    strings = dict(_select(connection, schema.STRINGS))
    return [
        TracePoint(time_ns, thread_id, Kind(kind), strings[channel], strings[label])
        for time_ns, thread_id, kind, channel, label in _select(
            connection, schema.POINTS
        )
    ]


def _samples(connection: sqlite3.Connection) -> list[Sample]:
    series = {i: Series(*names) for i, *names in _select(connection, schema.SERIES)}
    return [
        Sample(series[number], time_ns, value)
        for number, time_ns, value in _select(connection, schema.SAMPLES)
    ]


def _histograms(connection: sqlite3.Connection) -> list[Histogram]:
    heatmaps = {
        number: Heatmap(name, unit, schema.decode_edges(edges))
        for number, name, unit, edges in _select(connection, schema.HEATMAPS)
    }
    return [
        Histogram(heatmaps[number], time_ns, schema.decode_counts(blob), outside)
        for number, time_ns, blob, outside in _select(connection, schema.HISTOGRAMS)
    ]
