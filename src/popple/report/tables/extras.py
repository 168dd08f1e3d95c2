"""Tables that Popple adds to the format: operations, timeline, info, generic ops."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import fields

from popple.report.parts.extras import (
    ChipTime,
    InfoValue,
    Operation,
    RoleBytes,
    TimelineSlice,
)
from popple.report.tables.rows import RecordTable, columns, insert_rows, select_rows

# Columns of our own tables are named as the fields of their records.
OPERATIONS = RecordTable(
    "popple_operations",
    Operation,
    columns(*(f.name for f in fields(Operation))),
)
CHIP_TIME = RecordTable(
    "popple_chip_time",
    ChipTime,
    columns(*(f.name for f in fields(ChipTime))),
)
MEMORY_ROLES = RecordTable(
    "popple_memory_roles",
    RoleBytes,
    columns(*(f.name for f in fields(RoleBytes))),
)
TIMELINE = RecordTable(
    "popple_timeline",
    TimelineSlice,
    columns(*(f.name for f in fields(TimelineSlice))),
)

_INFO_COLUMNS = ("key", "value")
_GENERIC_COLUMNS = ("framework_op", "count")


def insert_info(connection: sqlite3.Connection, info: Mapping[str, InfoValue]) -> None:
    """Write free facts by key."""
    insert_rows(connection, "popple_info", _INFO_COLUMNS, info.items())


def select_info(connection: sqlite3.Connection) -> dict[str, InfoValue]:
    """Read free facts by key."""
    return dict(select_rows(connection, "popple_info", _INFO_COLUMNS))


def insert_generic_ops(
    connection: sqlite3.Connection, counts: Mapping[str, int]
) -> None:
    """Write how often each framework op was modelled by the generic rule."""
    insert_rows(connection, "popple_generic_ops", _GENERIC_COLUMNS, counts.items())


def select_generic_ops(connection: sqlite3.Connection) -> dict[str, int]:
    """Read how often each framework op was modelled by the generic rule."""
    return dict(select_rows(connection, "popple_generic_ops", _GENERIC_COLUMNS))
