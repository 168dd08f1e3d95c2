"""Operations of a report by cost, from Popple's table or from executed steps."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from popple.report.parts.compute import ComputeSet
from popple.report.parts.extras import Operation
from popple.report.parts.programs import ExecutePayload, ProgramNode
from popple.report.query.liveness import program_name
from popple.report.read import Report
from popple.report.tables.rows import has_table

# Summed up by SQLite: a file may hold a row for every execution of every step.
_STEP_TOTALS = """
    SELECT steps.program, steps.type, ipu, SUM(cycles), COUNT(*)
    FROM steps JOIN steps_by_ipu ON step_id = steps.id
    WHERE steps.program IS NOT NULL AND steps.type != 'Sync'
    GROUP BY 1, 2, 3"""

# The class of cycles of each type of step; others, such as control, have none.
_CLASSES = {
    "OnTileExecute": "compute",
    "DoExchange": "exchange",
    "GlobalExchange": "links",
    "StreamCopy": "host",
    "StreamCopyBegin": "host",
    "StreamCopyEnd": "host",
}


def operations(report: Report) -> tuple[Operation, ...]:
    """All operations, costliest first.

    A genuine file knows programs, not ops: there, one row is a program on a chip.
    """
    found = report.operations or report.load("steps", _operations_of_steps)
    return tuple(sorted(found, key=lambda operation: -operation.cycles))


def costliest(report: Report, count: int) -> tuple[Operation, ...]:
    """The operations that take most cycles."""
    return operations(report)[:count]


def share_of_run(report: Report, operation: Operation) -> float:
    """Cycles of an operation as a fraction of its chip's time in the run."""
    # All runs of a report are of one program; the longest is the one summaries show.
    run_cycles = max((totals.cycles for totals in report.cycle_totals), default=0)
    return operation.cycles / run_cycles if run_cycles else 0.0


def _operations_of_steps(report: Report) -> tuple[Operation, ...]:
    sets = {each.id: each for each in report.compute_sets}
    programs = {each.id: each for each in report.programs}
    return tuple(
        Operation(
            id=number,
            name=program_name(programs[program_id], sets),
            kind=kind,
            cycles=cycles,
            chip=chip,
            compute_cycles=cycles if kind == "OnTileExecute" else 0,
            exchange_cycles=cycles if kind == "DoExchange" else 0,
            link_cycles=cycles if kind == "GlobalExchange" else 0,
            host_cycles=cycles if kind.startswith("StreamCopy") else 0,
            bound_by=_CLASSES.get(kind, ""),
            num_executions=count,
            num_vertices=_num_vertices(programs[program_id], sets),
        )
        for number, (program_id, kind, chip, cycles, count) in enumerate(
            _step_totals(report.connection)
        )
    )


def _step_totals(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    # A file of a program that never ran has no such table.
    if not has_table(connection, "steps"):
        return []
    return connection.execute(_STEP_TOTALS).fetchall()


def _num_vertices(program: ProgramNode, compute_sets: Mapping[int, ComputeSet]) -> int:
    if not isinstance(program.payload, ExecutePayload):
        return 0
    return compute_sets[program.payload.compute_set_id].num_vertices
