"""The modelled cost: made when someone asks, once."""

from __future__ import annotations

from pathlib import Path

from popple.graph import parse_graph
from popple.options import ModelOptions
from popple.report import open_report
from popple.session import CostRequest, ExecutableCache, KeptProgram, ModelledCost
from popple.target import Target, load_system

GRAPH = """
graph "g" {
  input %x : f32[16,64]
  weight %w : f32[64,10]
  matmul %y : %y : f32[16,10] = (%x, %w) forward chip=0 stage=0
  output %y
}
"""


class Asked:
    """Counts how often the program is asked for what is to be modelled."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> CostRequest:
        self.count += 1
        target = Target(load_system("bow-pod16"), 1, 1)
        return CostRequest(parse_graph(GRAPH), ModelOptions(), target, "test", "1.0")


def test_nothing_is_asked_before_someone_asks() -> None:
    ask = Asked()
    cost = ModelledCost(ask)
    assert ask.count == 0
    assert cost.cycles() == cost.modelled().simulation.cost.cycles > 0
    assert cost.modelled() is cost.modelled()
    assert ask.count == 1


def kept(directory: Path) -> KeptProgram:
    return KeptProgram(ExecutableCache(directory), "ab" * 32)


def test_a_cache_remembers_the_cycles(tmp_path: Path) -> None:
    cycles = ModelledCost(Asked(), kept(tmp_path)).cycles()
    ask = Asked()
    assert ModelledCost(ask, kept(tmp_path)).cycles() == cycles
    assert ask.count == 0


def test_a_cache_remembers_reports(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = ModelledCost(Asked(), kept(cache)).write_report(tmp_path / "1", 2)
    ask = Asked()
    later = ModelledCost(ask, kept(cache))
    second = later.write_report(tmp_path / "2", 2)
    assert second.read_bytes() == first.read_bytes()
    assert ask.count == 0
    # A report of another number of runs is another report.
    later.write_report(tmp_path / "3", 1)
    assert ask.count == 1


def test_a_report_is_written(tmp_path: Path) -> None:
    path = ModelledCost(Asked()).write_report(tmp_path / "report")
    with open_report(path) as report:
        assert "matmul" in [op.kind for op in report.operations]
