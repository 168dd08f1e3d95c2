"""The program tree and its visitors."""

from __future__ import annotations

import pytest

import pva

TYPE = pva.Program.Type


def by_type(report: pva.Report, kind: str) -> pva.Program:
    return next(p for p in report.compilation.programs if p.type.name == kind)


def test_types_names_and_children(report: pva.Report) -> None:
    programs = report.compilation.programs
    root = programs[0]
    assert root.type is TYPE.Sequence
    assert root.children == programs[1:7]
    names = {p.type.name: p.name for p in root.children}
    assert names["OnTileExecute"] == "dense/forward"
    assert names["DoExchange"] == "gather"
    assert by_type(report, "Sync").name == "Internal"
    assert by_type(report, "Unknown").name == "of"


def test_there_is_one_view_a_program(report: pva.Report) -> None:
    step = report.compilation.livenessProgramSteps[1]
    assert step.program is by_type(report, "OnTileExecute")


def test_what_programs_of_a_type_have(report: pva.Report) -> None:
    execute, exchange = (by_type(report, n) for n in ("OnTileExecute", "DoExchange"))
    assert execute.computeset.name == "dense/forward"  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(exchange, "computeset")
    assert exchange.codeBytesByTile == [16] * 8  # pyright: ignore[reportAttributeAccessIssue]
    assert exchange.estimatedCyclesByTile == [10] * 8  # pyright: ignore[reportAttributeAccessIssue]
    assert by_type(report, "Call").controlCodeByTile == [4] * 8
    assert exchange.controlCodeByTile == [0] * 8


def test_variables_of_programs(report: pva.Report) -> None:
    # The compute set names 0, 1 and 5, of which the report lists the first two.
    execute = by_type(report, "OnTileExecute")
    assert [each._id for each in execute.vars] == [0, 1]
    assert by_type(report, "Repeat").vars == []


class Names(pva.ProgramVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def visitOnTileExecute(self, program: pva.Program) -> None:
        self.seen.append(program.name)

    def visitDoExchange(self, program: pva.Program) -> None:
        self.seen.append(program.name)


def test_visitors_see_what_they_ask_for(report: pva.Report) -> None:
    names = Names()
    for program in report.compilation.programs:
        program.accept(names)
    assert names.seen == ["dense/forward", "gather"]


@pytest.mark.parametrize("kind", [kind.name for kind in TYPE])
def test_every_type_can_be_visited(kind: str) -> None:
    assert hasattr(pva.ProgramVisitor, f"visit{kind}")
