"""SQLite tables of a trace file, and the codes of their blobs.

trace_info     key, value: format, process_id, command, epoch_ns
strings        id, text: names of channels and labels, each once
threads        id, name
points         time_ns, thread_id, kind, channel_id, label_id
series         id, graph, unit, name
samples        series_id, time_ns, value
heatmaps       id, name, unit, edges (eight-byte floats, little-endian)
HEATMAP_DATA   heatmap_id, time_ns, bin_quantities (rle code), outside
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from popple.report.codec import array_of, decode_rle, encode_rle, runs_of

FORMAT = "popple-trace-1"

INFO = "trace_info"
STRINGS = "strings"
THREADS = "threads"
POINTS = "points"
SERIES = "series"
SAMPLES = "samples"
HEATMAPS = "heatmaps"
# The one table that the vendor documents; tools look for it by this name.
HISTOGRAMS = "HEATMAP_DATA"

COLUMNS = {
    INFO: ("key", "value"),
    STRINGS: ("id", "text"),
    THREADS: ("id", "name"),
    POINTS: ("time_ns", "thread_id", "kind", "channel_id", "label_id"),
    SERIES: ("id", "graph", "unit", "name"),
    SAMPLES: ("series_id", "time_ns", "value"),
    HEATMAPS: ("id", "name", "unit", "edges"),
    HISTOGRAMS: ("heatmap_id", "time_ns", "bin_quantities", "outside"),
}
_KEYS = {"id": "id INTEGER PRIMARY KEY", "key": "key TEXT PRIMARY KEY"}


def create_statements() -> list[str]:
    """The SQL that makes the tables."""
    return [
        f"CREATE TABLE {table} ({', '.join(_KEYS.get(c, c) for c in columns)})"
        for table, columns in COLUMNS.items()
    ]


def encode_edges(edges: Sequence[float]) -> bytes:
    """The edges of a heatmap as a blob."""
    return struct.pack(f"<{len(edges)}d", *edges)


def decode_edges(blob: bytes) -> tuple[float, ...]:
    """The edges behind a blob."""
    return struct.unpack(f"<{len(blob) // 8}d", blob)


def encode_counts(counts: Sequence[int]) -> bytes:
    """The counts of a histogram as `bin_quantities` holds them."""
    return encode_rle(runs_of(counts))


def decode_counts(blob: bytes) -> tuple[int, ...]:
    """The counts behind a `bin_quantities`."""
    return tuple(array_of(decode_rle(blob)).tolist())
