"""Ids of program types and places of payloads."""

from __future__ import annotations

from popple.report import ExecutePayload, Program, RepeatPayload
from popple.report.tables.programs import index_payloads, number_types


def test_genuine_types_keep_their_ids() -> None:
    programs = [Program(0, "Sequence"), Program(1, "SyncAns"), Program(2, "Sequence")]
    assert number_types(programs) == {"Sequence": 1, "SyncAns": 28}


def test_new_types_are_numbered_apart() -> None:
    programs = [Program(0, "Fly"), Program(1, "DoExchange"), Program(2, "Swim")]
    assert number_types(programs) == {"DoExchange": 11, "Fly": 200, "Swim": 201}


def test_payloads_are_numbered_within_their_type() -> None:
    index = index_payloads(
        [
            Program(5, "OnTileExecute", payload=ExecutePayload(0)),
            Program(6, "Repeat", payload=RepeatPayload(2)),
            Program(7, "Sequence"),
            Program(8, "OnTileExecute", payload=ExecutePayload(0)),
        ]
    )
    assert index.index_of == {5: 0, 6: 0, 8: 1}
    assert index.payloads["Repeat"] == [RepeatPayload(2)]
