"""What happened in the run of the report made by hand."""

from __future__ import annotations

import gc
import sqlite3

import pytest

import pva
from pva._execution import run_ends


def test_steps_follow_the_run(report: pva.Report) -> None:
    execution = report.execution
    assert execution.totalCycles.total == 160
    (run,) = execution.runs
    assert (run.name, run.steps) == ("main", execution.steps)
    assert run.microseconds == (1000, 1002)
    assert [step.program.type.name for step in execution.steps] == [
        "OnTileExecute",
        "DoExchange",
        "GlobalExchange",
        "StreamCopyMid",
    ]


def test_cycles_are_counted_from_the_start_of_the_run(report: pva.Report) -> None:
    compute, exchange, *_ = report.execution.steps
    assert [ipu.cycles for ipu in compute.ipus] == [100, 80]
    assert compute.cyclesByTile == [100, 100, 100, 60, 80, 80, 80, 80]
    active = compute.ipus[0].activeCycles
    # Tiles begin together; their ends average to (300 + 60) / 4.
    assert (active.cyclesFrom.max, active.cyclesTo) == (0, (100, 90, 60))
    later = exchange.ipus[1].activeCycles
    assert (later.cyclesFrom.min, later.cyclesTo.max) == (100, 110)
    assert compute.ipus[0].tileBalance == 0.9


def test_data_of_every_chip(report: pva.Report) -> None:
    exchange = report.execution.steps[1]
    # Tiles of chip 0 receive 8 bytes each, those of chip 1 none; all send 4.
    assert [ipu.dataIn for ipu in exchange.ipus] == [32, 0]
    assert [ipu.dataOut for ipu in exchange.ipus] == [16, 16]
    assert report.execution.steps[0].ipus[0].dataIn == 0


def test_a_chip_that_takes_no_part_is_idle(report: pva.Report) -> None:
    copy = report.execution.steps[3]
    assert [ipu.cycles for ipu in copy.ipus] == [30, 0]
    assert copy.cyclesByTile == [30, 0, 0, 0, 0, 0, 0, 0]


def test_blocks(report: pva.Report) -> None:
    (block,) = report.execution.blocks(1)
    assert (block.cyclesFrom, block.cyclesTo, block.tile) == (10, 20, 1)
    assert block.isCommon
    assert not block.isStreamCopy
    assert block.program is None
    assert report.execution.blocks(0) == []


def test_syncs_outside_the_tree_are_programs_too(report: pva.Report) -> None:
    index = report.execution._programs
    waiting = index.waiting("External")
    assert (waiting.type, waiting.name) == (pva.Program.Type.Sync, "External")
    assert index.waiting("SyncAns").type is pva.Program.Type.SyncAns


def test_runs_share_the_steps_out() -> None:
    assert run_ends([], 0) == []
    assert run_ends([2, 3], 5) == [2, 5]
    # One sync more a run than is counted; something else more: the last run's.
    assert run_ends([2, 3], 7) == [3, 7]
    assert run_ends([16], 20) == [20]


def test_a_report_is_let_go_of_with_its_last_view(report: pva.Report) -> None:
    fresh = pva.openReport(report.records.path)
    connection = fresh.records.connection
    execution = fresh.execution
    del fresh
    assert len(execution.runs) == len(report.execution.runs)
    del execution
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("select 1")
