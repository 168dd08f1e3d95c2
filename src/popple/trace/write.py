"""Write a trace file while the program runs, batch by batch.

The file appears whole, with its tables; after that every batch is one transaction, so
a reader, or a program that is killed, never sees half of one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from popple.errors import ReportError
from popple.files import replace_file
from popple.report.tables.rows import insert_rows
from popple.trace import schema
from popple.trace.parts import Batch, Heatmap, Series


class TraceWriter:
    """Adds batches to a trace file.

    No connection is kept between batches: the program may fork at any time, and a
    SQLite connection must not be carried into a child.
    """

    def __init__(
        self, path: Path, *, process_id: int, command: str, epoch_ns: int
    ) -> None:
        self.path = path
        self._strings: dict[str, int] = {}
        self._series: dict[Series, int] = {}
        self._heatmaps: dict[Heatmap, int] = {}
        self._threads: set[int] = set()
        info = {
            "format": schema.FORMAT,
            "process_id": process_id,
            "command": command,
            "epoch_ns": epoch_ns,
        }
        with _saying_where(path):
            _create(path, info.items())

    def append(self, batch: Batch) -> None:
        """Add a batch, all of it or nothing."""
        with (
            _saying_where(self.path),
            closing(sqlite3.connect(self.path)) as connection,
            connection,
        ):
            # Losing the last second of a trace to a power cut is no harm.
            connection.execute("PRAGMA synchronous = OFF")
            for table, rows in self._rows(batch):
                insert_rows(connection, table, schema.COLUMNS[table], rows)

    def _rows(self, batch: Batch) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """Rows by table; what rows refer to by number comes first."""
        # Channel and label of each point: a few texts, repeated millions of times.
        texts = (text for point in batch.points for text in point[3:])
        yield schema.STRINGS, [(i, t) for t, i in _number(self._strings, texts)]
        series = (sample.series for sample in batch.samples)
        yield (
            schema.SERIES,
            [(i, s.graph, s.unit, s.name) for s, i in _number(self._series, series)],
        )
        maps = (each.heatmap for each in batch.histograms)
        yield (
            schema.HEATMAPS,
            [
                (i, each.name, each.unit, schema.encode_edges(each.edges))
                for each, i in _number(self._heatmaps, maps)
            ],
        )
        yield schema.THREADS, self._thread_rows(batch)
        yield (
            schema.POINTS,
            [
                (*moment, int(kind), self._strings[channel], self._strings[label])
                for *moment, kind, channel, label in batch.points
            ],
        )
        yield (
            schema.SAMPLES,
            [(self._series[series], *rest) for series, *rest in batch.samples],
        )
        yield (
            schema.HISTOGRAMS,
            [
                (self._heatmaps[heatmap], time, schema.encode_counts(counts), outside)
                for heatmap, time, counts, outside in batch.histograms
            ],
        )

    def _thread_rows(self, batch: Batch) -> list[tuple[Any, ...]]:
        fresh = [
            item for item in batch.thread_names.items() if item[0] not in self._threads
        ]
        self._threads.update(number for number, _ in fresh)
        return fresh


def _number(known: dict[Any, int], values: Iterable[Any]) -> list[tuple[Any, int]]:
    """The values that were not known, with the numbers they get."""
    fresh = [value for value in dict.fromkeys(values) if value not in known]
    numbered = [(value, len(known) + place) for place, value in enumerate(fresh)]
    known.update(numbered)
    return numbered


def _create(path: Path, info: Iterable[tuple[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        replace_file(path) as draft,
        closing(sqlite3.connect(draft)) as connection,
        connection,
    ):
        for statement in schema.create_statements():
            connection.execute(statement)
        insert_rows(connection, schema.INFO, schema.COLUMNS[schema.INFO], info)


@contextmanager
def _saying_where(path: Path) -> Generator[None, None, None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise ReportError(
            f"the trace cannot be written: {error}.",
            where=str(path),
            remedy="Choose a directory you may write to, on a disk with room.",
        ) from error
