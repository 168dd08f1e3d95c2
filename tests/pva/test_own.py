"""Reports Popple writes: what pva adds up is what was modelled."""

from __future__ import annotations

from pathlib import Path

import pytest

import pva
from popple.graph import parse_graph
from popple.pipeline import Modelled, model_graph, write_report
from popple.target import load_target

GRAPH = """
graph "infer" {
  input %x : f32[16,64]
  weight %w : f32[64,32]
  matmul %y : %y : f32[16,32] = (%x, %w) forward chip=0 stage=0 in "fc" at "m.py:7"
  output %y
}
"""


@pytest.fixture(scope="module")
def modelled() -> Modelled:
    return model_graph(parse_graph(GRAPH), load_target("bow"))


@pytest.fixture(scope="module")
def report(modelled: Modelled, tmp_path_factory: pytest.TempPathFactory) -> pva.Report:
    directory = tmp_path_factory.mktemp("own")
    write_report(modelled, directory, framework="none", framework_version="1")
    return pva.openReport(directory / "profile.pop")


def test_cycles(modelled: Modelled, report: pva.Report) -> None:
    cycles = modelled.simulation.cost.cycles
    assert report.execution.totalCycles.total == cycles
    assert sum(step.ipus[0].cycles for step in report.execution.steps) <= cycles


def test_peak_memory_is_that_of_the_simulation(
    modelled: Modelled, report: pva.Report
) -> None:
    steps = report.compilation.livenessProgramSteps
    transient = modelled.simulation.liveness.transient_bytes
    found = [step.notAlwaysLiveMemory.bytes for step in steps]
    assert found == transient.sum(axis=1).tolist()


def test_variables_add_up_to_memory(report: pva.Report) -> None:
    compilation = report.compilation
    for tile in (0, 700, 1471):
        found = compilation.alwaysLiveVariablesForTile(tile)
        expected = compilation.tiles[tile].memory.alwaysLiveBytes
        assert sum(each.size for each in found) == expected
    names = {each.name for each in compilation.alwaysLiveVariables}
    assert {"vertexCode", "stack", "w"} <= names


def test_tiles_add_up_to_steps(report: pva.Report) -> None:
    step = max(
        report.compilation.livenessProgramSteps,
        key=lambda each: each.notAlwaysLiveMemory.bytes,
    )
    tiles = range(report.compilation.target.numTiles)
    total = sum(step.notAlwaysLiveMemoryForTile(tile).bytes for tile in tiles)
    assert total == step.notAlwaysLiveMemory.bytes


def test_code_of_vertices_is_their_category(report: pva.Report) -> None:
    for tile in report.compilation.tiles[::100]:
        code = sum(each.codeBytes for each in tile.memory.vertices)
        assert code == tile.memory.category.vertexCode.total


def test_operations_name_the_users_line(report: pva.Report) -> None:
    matmul = pva.OperationAnalysis(report).operations[0]
    assert matmul.name == "y"
    assert matmul.debugContext.location == ("m.py", 7, "")
    assert matmul.programs()


def test_errors_name_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"popple run --report DIR"):
        pva.openReport(tmp_path / "profile.pop")
