"""Tables of versions, options, compile events and instrumentation settings."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from popple.report.parts.settings import (
    CompileEvent,
    FormatVersion,
    Instrumentation,
    Optimization,
    Parameter,
    ProducerVersion,
)
from popple.report.tables.rows import (
    FLAG,
    Column,
    RecordTable,
    columns,
    insert_rows,
    select_rows,
)

FORMAT_VERSION = RecordTable(
    "version_info",
    FormatVersion,
    (
        *columns("major", "minor", "point", "file_type"),
        Column("is_unstable", "is_unstable_format", FLAG),
    ),
)
PRODUCER_VERSION = RecordTable(
    "poplar_version",
    ProducerVersion,
    columns("package_hash", "major", "minor", "point", text="string"),
)
COMPILE_EVENTS = RecordTable(
    "compilation_trace",
    CompileEvent,
    columns("name", duration_us="dur", start_us="ts"),
)
OPTIMIZATIONS = RecordTable("optimization_info", Optimization, columns("key", "value"))
INSTRUMENTATION = RecordTable(
    "instrumentation_settings",
    Instrumentation,
    (
        Column("has_compute", "compute", FLAG),
        Column("compute_level", "compute_level"),
        Column("has_external_exchange", "external_exchange", FLAG),
        Column("has_control_flow", "control_flow", FLAG),
    ),
)

# Three tables have these columns; only options of a run have its number too.
_OPTION = (*columns("name", "value"), Column("is_default", "is_default", FLAG))
COMPILATION_PARAMETERS = RecordTable("compilation_parameters", Parameter, _OPTION)
TARGET_PARAMETERS = RecordTable("target_parameters", Parameter, _OPTION)
EXECUTION_PARAMETERS = RecordTable(
    "execution_parameters", Parameter, (*_OPTION, Column("run_id", "run"))
)


def insert_texts(
    connection: sqlite3.Connection, table: str, column: str, texts: Sequence[str]
) -> None:
    """Write a table of one text column."""
    insert_rows(connection, table, (column,), [(text,) for text in texts])


def select_text(connection: sqlite3.Connection, table: str, column: str) -> str:
    """The first text of a table of one text column; empty where it has no row."""
    rows = select_rows(connection, table, (column,))
    return rows[0][0] if rows else ""
