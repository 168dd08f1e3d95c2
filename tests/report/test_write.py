"""Files appear whole or not at all, and hold each vector once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import cbor2
import pytest

from popple import report as rp
from popple.errors import ReportError


def rows_of(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_three_files_and_no_drafts(contents: rp.ReportContents, tmp_path: Path) -> None:
    path = rp.write_report(contents, tmp_path / "new" / "report")
    names = sorted(file.name for file in path.parent.iterdir())
    assert names == ["debug.cbor", "framework.json", "profile.pop"]


def test_sidecars_are_plain_data(contents: rp.ReportContents, tmp_path: Path) -> None:
    rp.write_report(contents, tmp_path)
    debug = cbor2.loads((tmp_path / "debug.cbor").read_bytes())
    framework = json.loads((tmp_path / "framework.json").read_text())
    context = {"name": "dense", "parent": None, "module": "net.dense"}
    assert debug == {4: {**context, "source_line": "net.py:12"}}
    options = {"precision": "fp16"}
    assert framework == {"name": "torch", "version": "2.13", "options": options}


def test_equal_vectors_are_stored_once(
    contents: rp.ReportContents, tmp_path: Path
) -> None:
    path = rp.write_report(contents, tmp_path)
    # Executed: uneven and even compute, exchange, between chips, host.
    assert rows_of(path, "SELECT COUNT(*) FROM cycles_by_tile") == [(5,)]
    # Expected: compute set 90, traffic 10, code copy 5.
    assert rows_of(path, "SELECT COUNT(*) FROM compilation_cycles_by_tile") == [(3,)]


def test_vectors_split_differently_are_equal(
    contents: rp.ReportContents, tmp_path: Path
) -> None:
    chips = (rp.lockstep(0, 0, ((4, 7),)), rp.lockstep(1, 0, [(2, 7), (2, 7)]))
    steps = (rp.Step("OnTileExecute", 1, chips=chips),)
    bare = replace(contents, steps=steps, compute_sets=(rp.ComputeSet(0, "x"),))
    path = rp.write_report(bare, tmp_path)
    assert rows_of(path, "SELECT id FROM cycles_by_tile") == [(0,)]


def test_redundant_columns_follow(contents: rp.ReportContents, tmp_path: Path) -> None:
    path = rp.write_report(contents, tmp_path)
    query = "SELECT type, host_exchange, inter_ipu_exchange, exchange, compute_set"
    assert rows_of(path, f"{query} FROM steps") == [
        ("OnTileExecute", None, None, None, 0),
        ("DoExchange", None, None, 0, None),
        ("GlobalExchange", None, 0, None, None),
        ("StreamCopy", 0, None, None, None),
    ]
    query = "SELECT bytes_received_by_ipu_rle, bytes_sent_by_ipu_rle"
    by_chip = rows_of(path, f"{query} FROM program_type_do_exchange")
    # Chip 0 receives 4 * 8 and chip 1 nothing; both send 4 * 4.
    assert by_chip == [(bytes.fromhex("85 a0 80"), bytes.fromhex("84 90"))]


def test_liveness_of_all_chips_is_the_sum(
    contents: rp.ReportContents, tmp_path: Path
) -> None:
    deltas = (rp.LivenessDelta(0, 1, 5), rp.LivenessDelta(1, 1, 6))
    cancelling = (rp.LivenessDelta(0, 2, 5), rp.LivenessDelta(1, 2, -5))
    path = rp.write_report(
        replace(contents, liveness_deltas=deltas + cancelling), tmp_path
    )
    table = "memory_not_always_live_by_step_and_ipu"
    query = f"SELECT step_id, delta_bytes FROM {table} WHERE ipu IS NULL"
    assert rows_of(path, query) == [(1, 11)]


def test_unknown_program_types_get_new_ids(
    contents: rp.ReportContents, tmp_path: Path
) -> None:
    path = rp.write_report(contents, tmp_path)
    query = "SELECT id FROM program_types WHERE name = 'Unheard'"
    assert rows_of(path, query) == [(200,)]


class Interrupted(tuple[rp.Block, ...]):
    """Blocks during whose writing the user presses Control-C."""

    def __iter__(self) -> Iterator[rp.Block]:
        raise KeyboardInterrupt


def test_a_killed_write_leaves_the_old_report(
    contents: rp.ReportContents, tmp_path: Path
) -> None:
    before = rp.write_report(contents, tmp_path).read_bytes()
    with pytest.raises(KeyboardInterrupt):
        rp.write_report(replace(contents, blocks=Interrupted()), tmp_path)
    assert (tmp_path / "profile.pop").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 3


def test_a_refused_value_leaves_no_report(
    contents: rp.ReportContents, tmp_path: Path
) -> None:
    trace = rp.Marker(0, 0, 1, ((8, -1),), ((8, 0),))
    with pytest.raises(ReportError, match="negative"):
        rp.write_report(replace(contents, markers=(trace,)), tmp_path)
    assert not (tmp_path / "profile.pop").exists()


def test_repeated_ids_are_an_error(contents: rp.ReportContents, tmp_path: Path) -> None:
    twice = (*contents.operations, contents.operations[0])
    with pytest.raises(ReportError, match="UNIQUE"):
        rp.write_report(replace(contents, operations=twice), tmp_path)


def test_a_file_in_the_way_is_named(
    contents: rp.ReportContents, tmp_path: Path
) -> None:
    blocked = tmp_path / "report"
    blocked.write_text("not a directory")
    with pytest.raises(ReportError, match="report: the report cannot be written"):
        rp.write_report(contents, blocked)
