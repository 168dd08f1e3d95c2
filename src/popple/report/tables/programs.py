"""Tables of the program tree: one row a program, one more in the table of its type."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from popple.report.codec import StoredRuns, decode_ids, encode_rle, encode_varints
from popple.report.parts.programs import (
    CallPayload,
    ChipExchangePayload,
    CodeCopyPayload,
    EntryProgram,
    ExchangePayload,
    ExchangeRegion,
    ExecutePayload,
    LivenessStep,
    Payload,
    ProgramNode,
    RepeatPayload,
    StreamCopyPayload,
    SyncPayload,
    TilesPayload,
)
from popple.report.tables import exchanges
from popple.report.tables.rows import (
    VARINTS,
    Column,
    RecordTable,
    columns,
    insert_rows,
    select_rows,
)
from popple.report.tables.vectors import VectorReader, VectorWriter

# Ids below 100 are those genuine files use; for the other types no genuine file
# has told the id, and readers find the name in `program_types`.
PROGRAM_TYPE_IDS = {
    "Sequence": 1,
    "OnTileExecute": 2,
    "RepeatWhile": 4,
    "OnEveryTileSwitch": 9,
    "DoExchange": 11,
    "StreamCopyBegin": 17,
    "StreamCopyMid": 18,
    "StreamCopyEnd": 19,
    "WriteUndef": 20,
    "SetLocalConsensusFromVar": 23,
    "Sync": 25,
    "Sans": 27,
    "SyncAns": 28,
    "Call": 101,
    "Repeat": 102,
    "GlobalExchange": 103,
    "CodeCopy": 104,
    "If": 105,
    "Switch": 106,
}
_FIRST_FREE_TYPE_ID = 200

_SIMPLE: dict[str, RecordTable[Any]] = {
    "OnTileExecute": RecordTable(
        "program_type_on_tile_execute",
        ExecutePayload,
        columns(compute_set_id="compute_set"),
    ),
    "Repeat": RecordTable(
        "program_type_repeat", RepeatPayload, columns(count="repeat_count")
    ),
    "Call": RecordTable("program_type_call", CallPayload, columns("function_id")),
    "Sync": RecordTable("program_type_sync", SyncPayload, columns("sync_type")),
    "Sans": RecordTable(
        "program_type_sans", TilesPayload, (Column("tiles", "tiles", VARINTS),)
    ),
    "SyncAns": RecordTable(
        "program_type_sync_ans", TilesPayload, (Column("tiles", "tiles", VARINTS),)
    ),
}

# `program_types` names the table of a type; StreamCopyMid's lacks its ending.
_TYPE_TABLES = {
    **{type_name: table.name for type_name, table in _SIMPLE.items()},
    "DoExchange": "program_type_do_exchange",
    "GlobalExchange": "program_type_global_exchange",
    "StreamCopyMid": "program_type_stream_copy",
    "CodeCopy": "program_type_code_copy",
}

_PROGRAM_COLUMNS = (
    "compilation_step_id",
    "id",
    "variant",
    "variant_index",
    "children",
    "name",
    "debug_id",
    "control_code_bytes_by_tile",
)

_ENTRY_COLUMNS = columns("id", "compilation_step_id", program_id="program")
CONTROL_PROGRAMS = RecordTable("control_programs", EntryProgram, _ENTRY_COLUMNS)
FUNCTION_PROGRAMS = RecordTable("function_programs", EntryProgram, _ENTRY_COLUMNS)
EXCHANGE_REGIONS = RecordTable(
    "exchange_regions", ExchangeRegion, columns("id", "regions", variable_id="var_id")
)


@dataclass(frozen=True)
class PayloadIndex:
    """Where the payload of every program lies in the table of its type."""

    payloads: Mapping[str, Sequence[Payload]]
    index_of: Mapping[int, int]


def index_payloads(programs: Sequence[ProgramNode]) -> PayloadIndex:
    """Number the payloads of each program type in the order of the programs."""
    payloads: defaultdict[str, list[Payload]] = defaultdict(list)
    index_of: dict[int, int] = {}
    for program in programs:
        if program.payload is not None:
            # The format numbers payloads within the table of their type, from 0.
            index_of[program.id] = len(payloads[program.type_name])
            payloads[program.type_name].append(program.payload)
    return PayloadIndex(payloads, index_of)


def insert_programs(
    connection: sqlite3.Connection,
    programs: Sequence[ProgramNode],
    index: PayloadIndex,
    compiled: VectorWriter,
    tiles_per_chip: int,
) -> None:
    """Write programs, their types and their payloads."""
    type_ids = number_types(programs)
    types = [
        (number, name, _TYPE_TABLES.get(name)) for name, number in type_ids.items()
    ]
    names = ("id", "name", "program_type_table")
    insert_rows(connection, "program_types", names, types)
    rows = [_program_row(each, type_ids, index) for each in programs]
    insert_rows(connection, "programs", _PROGRAM_COLUMNS, rows)
    for type_name, table in _SIMPLE.items():
        listed = ("id", *(column.name for column in table.columns))
        payloads = enumerate(index.payloads.get(type_name, ()))
        numbered = [(number, *table.encode(payload)) for number, payload in payloads]
        insert_rows(connection, table.name, listed, numbered)
    writer = exchanges.ExchangeWriter(connection, compiled, tiles_per_chip)
    _insert_movers(writer, index.payloads)


def number_types(programs: Sequence[ProgramNode]) -> dict[str, int]:
    """The id of every type that occurs; types Popple does not know get new ids."""
    used = list(dict.fromkeys(program.type_name for program in programs))
    unknown = [name for name in used if name not in PROGRAM_TYPE_IDS]
    # A genuine file may hold types that no file before it had; they are written back
    # under ids that no type here uses.
    known = {name: PROGRAM_TYPE_IDS[name] for name in used if name not in unknown}
    fresh = {name: number for number, name in enumerate(unknown, _FIRST_FREE_TYPE_ID)}
    return known | fresh


def _program_row(
    program: ProgramNode, type_ids: Mapping[str, int], index: PayloadIndex
) -> tuple[Any, ...]:
    code = program.control_code_bytes_by_tile
    return (
        program.compilation_step_id,
        program.id,
        type_ids[program.type_name],
        index.index_of.get(program.id),
        encode_varints(program.children),
        program.name,
        program.debug_id,
        None if code is None else encode_rle(code),
    )


def _insert_movers(
    writer: exchanges.ExchangeWriter, payloads: Mapping[str, Sequence[Payload]]
) -> None:
    def of(type_name: str) -> Sequence[Payload]:
        return payloads.get(type_name, ())

    writer.insert_exchanges(cast(Sequence[ExchangePayload], of("DoExchange")))
    writer.insert_chip_exchanges(
        cast(Sequence[ChipExchangePayload], of("GlobalExchange"))
    )
    writer.insert_stream_copies(cast(Sequence[StreamCopyPayload], of("StreamCopyMid")))
    writer.insert_code_copies(cast(Sequence[CodeCopyPayload], of("CodeCopy")))


def select_programs(
    connection: sqlite3.Connection, compiled: VectorReader
) -> tuple[ProgramNode, ...]:
    """Read programs with their payloads."""
    type_names = dict(select_rows(connection, "program_types", ("id", "name")))
    payloads = _select_payloads(connection, compiled)
    return tuple(
        ProgramNode(
            id=number,
            type_name=type_names[type_id],
            name=name,
            children=decode_ids(children or b""),
            payload=payloads.get(type_names[type_id], {}).get(index),
            control_code_bytes_by_tile=None if code is None else StoredRuns(code),
            debug_id=debug_id,
            compilation_step_id=step_id,
        )
        for step_id, number, type_id, index, children, name, debug_id, code in (
            select_rows(connection, "programs", _PROGRAM_COLUMNS)
        )
    )


def _select_payloads(
    connection: sqlite3.Connection, compiled: VectorReader
) -> dict[str, dict[int, Payload]]:
    simple = {
        name: _select_simple(connection, table) for name, table in _SIMPLE.items()
    }
    return simple | {
        "DoExchange": exchanges.select_exchanges(connection, compiled),
        "GlobalExchange": exchanges.select_chip_exchanges(connection, compiled),
        "StreamCopyMid": exchanges.select_stream_copies(connection, compiled),
        "CodeCopy": exchanges.select_code_copies(connection, compiled),
    }


def _select_simple(
    connection: sqlite3.Connection, table: RecordTable[Any]
) -> dict[int, Payload]:
    names = ("id", *(column.name for column in table.columns))
    rows = select_rows(connection, table.name, names)
    return {number: table.decode(row) for number, *row in rows}


def insert_exchange_regions(
    connection: sqlite3.Connection, regions: Sequence[ExchangeRegion]
) -> None:
    """Write the regions exchanges touch, and the ids they are grouped by."""
    EXCHANGE_REGIONS.insert(connection, regions)
    ids = dict.fromkeys(region.id for region in regions)
    insert_rows(connection, "exchange_target", ("id",), [(number,) for number in ids])


def insert_liveness_steps(
    connection: sqlite3.Connection, steps: Sequence[LivenessStep]
) -> None:
    """Write the depth-first steps, and their names where they have one."""
    rows = [(step.id, step.program_id, step.parent_id) for step in steps]
    names = ("id", "program_id", "parent_step_id")
    insert_rows(connection, "depth_first_steps", names, rows)
    named = [(step.id, step.name) for step in steps if step.name is not None]
    insert_rows(connection, "popple_step_names", ("step_id", "name"), named)


def select_liveness_steps(connection: sqlite3.Connection) -> tuple[LivenessStep, ...]:
    """Read the depth-first steps."""
    names = dict(select_rows(connection, "popple_step_names", ("step_id", "name")))
    return tuple(
        LivenessStep(number, program_id, parent_id, names.get(number))
        for number, program_id, parent_id in select_rows(
            connection, "depth_first_steps", ("id", "program_id", "parent_step_id")
        )
    )
