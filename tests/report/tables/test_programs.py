"""Ids of program types and places of payloads."""

from __future__ import annotations

from popple.report import ExecutePayload, ProgramNode, RepeatPayload
from popple.report.tables.programs import index_payloads, number_types


def test_genuine_types_keep_their_ids() -> None:
    programs = [
        ProgramNode(0, "Sequence"),
        ProgramNode(1, "SyncAns"),
        ProgramNode(2, "Sequence"),
    ]
    assert number_types(programs) == {"Sequence": 1, "SyncAns": 28}


def test_new_types_are_numbered_apart() -> None:
    programs = [
        ProgramNode(0, "Fly"),
        ProgramNode(1, "DoExchange"),
        ProgramNode(2, "Swim"),
    ]
    assert number_types(programs) == {"DoExchange": 11, "Fly": 200, "Swim": 201}


def test_payloads_are_numbered_within_their_type() -> None:
    index = index_payloads(
        [
            ProgramNode(5, "OnTileExecute", payload=ExecutePayload(0)),
            ProgramNode(6, "Repeat", payload=RepeatPayload(2)),
            ProgramNode(7, "Sequence"),
            ProgramNode(8, "OnTileExecute", payload=ExecutePayload(0)),
        ]
    )
    assert index.index_of == {5: 0, 6: 0, 8: 1}
    assert index.payloads["Repeat"] == [RepeatPayload(2)]
