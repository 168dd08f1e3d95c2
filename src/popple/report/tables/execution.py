"""Tables of executed steps, runs, cycle totals, markers and measured blocks."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from typing import Any

from popple.report.parts.execution import (
    Block,
    CycleTotals,
    Marker,
    RunInfo,
    Spread,
    Step,
    StepOnChip,
    TileCycles,
)
from popple.report.parts.programs import (
    ChipExchangePayload,
    ExchangePayload,
    ExecutePayload,
    ProgramNode,
    StreamCopyPayload,
)
from popple.report.tables.programs import PayloadIndex
from popple.report.tables.rows import (
    PACKED,
    VARINTS,
    Column,
    RecordTable,
    columns,
    insert_rows,
    nullable,
    select_rows,
)
from popple.report.tables.vectors import VectorReader, VectorWriter

RUNS = RecordTable(
    "runs",
    RunInfo,
    (
        *columns(
            "id",
            "name",
            "num_programs",
            "num_steps",
            start_epoch_us="start_epoch_time_microseconds",
            elapsed_us="elapsed_microseconds",
        ),
        Column("estimated_hz_by_chip", "estimated_freq_by_ipu", nullable(VARINTS)),
        Column("start_cycles_by_chip", "start_cycles_by_ipu", nullable(VARINTS)),
        Column("end_cycles_by_chip", "end_cycles_by_ipu", nullable(VARINTS)),
    ),
)

MARKERS = RecordTable(
    "absolute_markers",
    Marker,
    (
        *columns("id", from_cycles="cycles_from", length_cycles="cycles_length"),
        Column("step_id_by_tile", "step_id_by_tile", PACKED),
        Column("cycles_by_tile", "cycles_by_tile", PACKED),
    ),
)

BLOCKS = RecordTable(
    "blocks",
    Block,
    columns(
        "tile",
        "block_id",
        from_cycles="cycles_from",
        to_cycles="cycles_to",
        type_id="type",
    ),
)

_STEP_COLUMNS = (
    "id",
    "type",
    "program",
    "sync_type",
    "host_exchange",
    "inter_ipu_exchange",
    "exchange",
    "compute_set",
)
_ON_CHIP_COLUMNS = (
    "step_id",
    "ipu",
    "cycles_base",
    *(f"active_cycles_from_{end}" for end in Spread._fields),
    *(f"active_cycles_to_{end}" for end in Spread._fields),
    *(f"all_cycles_to_{end}" for end in Spread._fields),
    "cycles",
    "active_tiles",
    "active_tile_balance",
    "tile_balance",
    "thread_balance",
    "tile_cycles_id",
)
# The format says IPU where Popple says chip.
_ACCOUNTS = tuple(
    account.name.replace("inter_chip", "inter_ipu") for account in fields(TileCycles)
)
_TOTAL_COLUMNS = (
    "run_id",
    "cycles",
    *(f"tile_cycles_{account}" for account in _ACCOUNTS),
    *(f"tile_overhead_cycles_{account}" for account in _ACCOUNTS),
)


def insert_steps(
    connection: sqlite3.Connection,
    steps: Sequence[Step],
    programs: Sequence[ProgramNode],
    index: PayloadIndex,
    executed: VectorWriter,
) -> None:
    """Write steps and what they took on every chip."""
    # Once for each program, not for each step: loops execute one program many times.
    references: dict[int | None, References] = {
        each.id: _references(each, index.index_of) for each in programs
    }
    rows = (
        (
            number,
            step.kind,
            step.program_id,
            step.sync_type,
            *references.get(step.program_id, _NO_REFERENCES),
        )
        for number, step in enumerate(steps)
    )
    insert_rows(connection, "steps", _STEP_COLUMNS, rows)
    on_chips = _on_chip_rows(steps, executed)
    insert_rows(connection, "steps_by_ipu", _ON_CHIP_COLUMNS, on_chips)


References = tuple[int | None, int | None, int | None, int | None]
_NO_REFERENCES: References = (None, None, None, None)


def _references(program: ProgramNode, index_of: Mapping[int, int]) -> References:
    """Columns that repeat what the program of a step refers to."""
    payload, index = program.payload, index_of.get(program.id)
    return (
        index if isinstance(payload, StreamCopyPayload) else None,
        index if isinstance(payload, ChipExchangePayload) else None,
        index if isinstance(payload, ExchangePayload) else None,
        payload.compute_set_id if isinstance(payload, ExecutePayload) else None,
    )


def _on_chip_rows(
    steps: Sequence[Step], executed: VectorWriter
) -> Iterator[tuple[Any, ...]]:
    for number, step in enumerate(steps):
        for on in step.chips:
            runs = on.cycles_by_tile
            yield (
                number,
                on.chip,
                on.base_cycles,
                *on.active_from_cycles,
                *on.active_to_cycles,
                *on.all_to_cycles,
                on.cycles,
                on.num_active_tiles,
                on.active_tile_balance,
                on.tile_balance,
                on.thread_balance,
                None if runs is None else executed.id_of(runs),
            )


def select_steps(
    connection: sqlite3.Connection, executed: VectorReader
) -> tuple[Step, ...]:
    """Read steps in the order they ran."""
    on_chips: defaultdict[int, list[StepOnChip]] = defaultdict(list)
    for step_id, *row in select_rows(connection, "steps_by_ipu", _ON_CHIP_COLUMNS):
        on_chips[step_id].append(_decode_on_chip(row, executed))
    return tuple(
        Step(kind, program_id, sync_type, tuple(on_chips[number]))
        for number, kind, program_id, sync_type in select_rows(
            connection, "steps", _STEP_COLUMNS[:4]
        )
    )


def _decode_on_chip(row: Sequence[Any], executed: VectorReader) -> StepOnChip:
    chip, base_cycles, *cycles = row
    # Nine numbers are the three spreads; positions follow `_ON_CHIP_COLUMNS`.
    balances = cycles[9:14]
    return StepOnChip(
        chip,
        base_cycles,
        Spread(*cycles[0:3]),
        Spread(*cycles[3:6]),
        Spread(*cycles[6:9]),
        *balances,
        cycles_by_tile=executed.find(cycles[14]),
    )


def insert_cycle_totals(
    connection: sqlite3.Connection, totals: Sequence[CycleTotals]
) -> None:
    """Write what every run spent its cycles on."""
    rows = [
        (
            each.run_id,
            each.cycles,
            *astuple(each.tile_cycles),
            *astuple(each.overhead_cycles),
        )
        for each in totals
    ]
    insert_rows(connection, "execution_cycle_totals", _TOTAL_COLUMNS, rows)


def select_cycle_totals(connection: sqlite3.Connection) -> tuple[CycleTotals, ...]:
    """Read what every run spent its cycles on."""
    middle = 2 + len(_ACCOUNTS)
    return tuple(
        CycleTotals(
            row[0], row[1], TileCycles(*row[2:middle]), TileCycles(*row[middle:])
        )
        for row in select_rows(connection, "execution_cycle_totals", _TOTAL_COLUMNS)
    )


def insert_program_trace(
    connection: sqlite3.Connection, program_ids: Sequence[int]
) -> None:
    """Write the ids of executed programs; numbers begin at 1."""
    rows = enumerate(program_ids, start=1)
    insert_rows(connection, "program_trace", ("id", "program_id"), rows)


def select_program_trace(connection: sqlite3.Connection) -> tuple[int, ...]:
    """Read the ids of executed programs."""
    rows = select_rows(connection, "program_trace", ("id", "program_id"))
    return tuple(program_id for _, program_id in rows)
