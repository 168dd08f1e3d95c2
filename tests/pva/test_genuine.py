"""A file of the vendor's own software, read through pva."""

from __future__ import annotations

from pathlib import Path

import pytest

import pva


@pytest.fixture(scope="module")
def report(genuine_path: Path) -> pva.Report:
    return pva.openReport(genuine_path)


def test_known_figures(report: pva.Report) -> None:
    compilation = report.compilation
    assert compilation.graph == (4, 7363, 57135, 4418)
    tiles = compilation.tiles
    assert sum(tile.memory.total.includingGaps for tile in tiles) == 26_345_048
    assert sum(tile.memory.total.excludingGaps for tile in tiles) == 3_622_368
    assert compilation.target.totalMemory == 940_572_672
    assert report.execution.totalCycles.total == 20_869_010
    assert (len(report.execution.steps), len(report.execution.runs)) == (17, 1)


def test_variables_add_up_to_memory(report: pva.Report) -> None:
    compilation = report.compilation
    always = sum(each.size for each in compilation.alwaysLiveVariables)
    assert always == sum(tile.memory.alwaysLiveBytes for tile in compilation.tiles)
    on_tile = compilation.alwaysLiveVariablesForTile(5)
    expected = compilation.tiles[5].memory.alwaysLiveBytes
    assert sum(each.size for each in on_tile) == expected
    for step in compilation.livenessProgramSteps:
        live = step.notAlwaysLiveMemory
        assert sum(each.size for each in live.variables) == live.bytes


def test_code_of_vertices_lies_in_its_category(report: pva.Report) -> None:
    memory = report.compilation.tiles[0].memory
    code = sum(each.codeBytes for each in memory.vertices)
    assert 0 < code <= memory.category.vertexCode.total


def test_programs_use_lowered_variables(report: pva.Report) -> None:
    operations = pva.OperationAnalysis(report).operations
    used = {each.id for operation in operations for each in operation.vars}
    pieces = report.compilation.loweredVariables.allBriefVars
    assert used <= {each.id for each in pieces}
    assert len(pieces) == 57135
    assert used
