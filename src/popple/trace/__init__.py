"""Traces of host programs (`.pvti`): trace points, series, heatmaps; write and read.

    libpvti --TraceWriter--> file.pvti --read_trace--> Trace --spans_of--> Span

The vendor's format is not documented beyond one table, so a trace is Popple's own
SQLite layout (`schema`); that one table is there under its name. Nothing here knows
of a framework or of `profile.pop`.
"""

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
from popple.trace.read import read_trace
from popple.trace.schema import decode_counts, encode_counts
from popple.trace.spans import Span, spans_of
from popple.trace.write import TraceWriter

__all__ = [
    "Batch",
    "Heatmap",
    "Histogram",
    "Kind",
    "Sample",
    "Series",
    "Span",
    "Trace",
    "TracePoint",
    "TraceWriter",
    "decode_counts",
    "encode_counts",
    "read_trace",
    "spans_of",
]
