"""Tables of variables, their pieces on tiles, and liveness classes."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from popple.report.codec import StoredRuns, decode_ids, encode_rle, encode_varints
from popple.report.parts.variables import (
    AllocationOrder,
    Interference,
    LivenessClass,
    LoweredVariable,
    Variable,
)
from popple.report.tables.rows import (
    VARINTS,
    Column,
    RecordTable,
    columns,
    insert_rows,
    nullable,
    select_rows,
)

INTERFERENCES = RecordTable(
    "equivalence_class_interference",
    Interference,
    (
        Column("class_id", "class_id"),
        Column("interfering_class_ids", "interference_class_ids", VARINTS),
    ),
)

ALLOCATION_ORDERS = RecordTable(
    "allocation_order_by_tile",
    AllocationOrder,
    (Column("tile", "tile"), Column("variable_ids", "order", VARINTS)),
)

_LOWERED = RecordTable(
    "vars_info",
    LoweredVariable,
    (
        *columns(
            "tile",
            "offset",
            id="var_id",
            num_bytes="size_bytes",
            alignment_bytes="alignment",
            category_id="category",
            class_id="equivalence_class",
            flags="bitset",
            variable_id="unlowered_var_id",
        ),
        Column("element_constraints", "element_constraints", nullable(VARINTS, ())),
        Column("region_constraints", "region_constraints", nullable(VARINTS, ())),
        Column("name", "name_suffix"),
    ),
)
_NAME_COLUMNS = ("name_base_id", "name_prefix__vertex_field_")
# The format shortens names of vertex fields to a number; this is what it stands for.
_VERTEX_FIELD = "__vertexField_"

_CLASS_COLUMNS = ("id", "is_always_live")
_INTERVAL_COLUMNS = ("eq_class_id", "step_id_from", "step_id_to")
_SIZE_COLUMNS = ("unlowered_var_id", "eq_class_id", "bytes")
_PLACE_COLUMNS = (*_SIZE_COLUMNS, "chip", "bytes_by_tile_rle")


def insert_liveness_classes(
    connection: sqlite3.Connection, classes: Sequence[LivenessClass]
) -> None:
    """Write classes and their intervals."""
    rows = [(each.id, int(each.is_always_live)) for each in classes]
    insert_rows(connection, "eq_classes", _CLASS_COLUMNS, rows)
    intervals = [
        (each.id, *interval) for each in classes for interval in each.intervals
    ]
    insert_rows(connection, "eq_class_step", _INTERVAL_COLUMNS, intervals)


def select_liveness_classes(
    connection: sqlite3.Connection,
) -> tuple[LivenessClass, ...]:
    """Read classes and their intervals."""
    intervals: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, start, stop in select_rows(
        connection, "eq_class_step", _INTERVAL_COLUMNS
    ):
        intervals[number].append((start, stop))
    return tuple(
        LivenessClass(number, bool(is_always_live), tuple(intervals[number]))
        for number, is_always_live in select_rows(
            connection, "eq_classes", _CLASS_COLUMNS
        )
    )


def insert_variables(
    connection: sqlite3.Connection, variables: Sequence[Variable]
) -> None:
    """Write variables; their chips and tiles go to Popple's own table."""
    names = {variable.id: variable.name for variable in variables}
    insert_rows(connection, "unlowered_vars", ("id", "name"), names.items())
    sizes = [(each.id, each.class_id, each.num_bytes) for each in variables]
    insert_rows(connection, "var_bytes_by_eq_class", _SIZE_COLUMNS, sizes)
    # The format has one row for each tile of a variable; Popple keeps one run-length
    # vector for each chip in a table of its own, which is far smaller.
    places = [
        (*size, each.chip, encode_rle(each.bytes_by_tile))
        for size, each in zip(sizes, variables, strict=True)
    ]
    insert_rows(connection, "popple_variables", _PLACE_COLUMNS, places)
    # A variable has a record for each class and chip, but one row of debug ids.
    debug_ids = {each.id: encode_varints(each.debug_ids) for each in variables}
    insert_rows(connection, "debug_ids", ("variable_id", "ids"), debug_ids.items())


def select_variables(
    connection: sqlite3.Connection, tiles_per_chip: int
) -> tuple[Variable, ...]:
    """Read variables, one record for each variable, class and chip."""
    names = dict(select_rows(connection, "unlowered_vars", ("id", "name")))
    debug_ids = {
        number: decode_ids(blob or b"")
        for number, blob in select_rows(connection, "debug_ids", ("variable_id", "ids"))
    }
    rows = select_rows(connection, "popple_variables", _PLACE_COLUMNS)
    return tuple(
        Variable(
            id=number,
            name=names.get(number, ""),
            num_bytes=num_bytes,
            class_id=class_id,
            chip=chip,
            bytes_by_tile=StoredRuns(by_tile),
            debug_ids=debug_ids.get(number, ()),
        )
        for number, class_id, num_bytes, chip, by_tile in (
            # Genuine files have no table of ours.
            rows or _select_placed(connection, tiles_per_chip)
        )
    )


def _select_placed(
    connection: sqlite3.Connection, tiles_per_chip: int
) -> list[tuple[Any, ...]]:
    """Sizes by chip where the file tells the tile, in total where it does not."""
    by_chip = """
        SELECT unlowered_var_id, eq_class_id, SUM(bytes), tile / ?, x''
        FROM var_bytes_by_eq_class WHERE tile IS NOT NULL GROUP BY 1, 2, 4"""
    in_total = """
        SELECT unlowered_var_id, eq_class_id, bytes, NULL, x''
        FROM var_bytes_by_eq_class WHERE tile IS NULL ORDER BY rowid"""
    placed = connection.execute(by_chip, (tiles_per_chip,)).fetchall()
    return placed or connection.execute(in_total).fetchall()


def insert_lowered_variables(
    connection: sqlite3.Connection, variables: Sequence[LoweredVariable]
) -> None:
    """Write pieces of variables; names are stored once each."""
    distinct = dict.fromkeys(variable.name for variable in variables)
    string_ids = {name: number for number, name in enumerate(distinct)}
    strings = [(number, name) for name, number in string_ids.items()]
    insert_rows(connection, "vars_string_table", ("id", "string"), strings)
    # The name is the last column: the whole of it goes to the table of strings, and
    # what the format keeps behind it, the suffix, stays empty.
    names = (*(column.name for column in _LOWERED.columns), _NAME_COLUMNS[0])
    rows = (
        (*_LOWERED.encode(each)[:-1], "", string_ids[each.name]) for each in variables
    )
    insert_rows(connection, _LOWERED.name, names, rows)


def select_lowered_variables(
    connection: sqlite3.Connection,
) -> tuple[LoweredVariable, ...]:
    """Read pieces of variables."""
    strings = dict(select_rows(connection, "vars_string_table", ("id", "string")))
    names = (*(column.name for column in _LOWERED.columns), *_NAME_COLUMNS)
    return tuple(
        _LOWERED.decode((*row, _full_name(prefix, strings[base_id], suffix)))
        for *row, suffix, base_id, prefix in select_rows(
            connection, _LOWERED.name, names
        )
    )


def _full_name(prefix: int | None, base: str, suffix: str) -> str:
    field = "" if prefix is None else f"{_VERTEX_FIELD}{prefix}"
    return f"{field}{base}{suffix}"
