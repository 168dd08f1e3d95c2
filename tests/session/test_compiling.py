"""What compiling asks of the model: nothing, log lines, a report, a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from popple import logs
from popple.errors import OutOfMemoryError
from popple.graph import parse_graph
from popple.options import ModelOptions
from popple.report import open_report
from popple.session import CostRequest, ModelledCost, Settings, compile_program
from popple.session.watching import watch_programs
from popple.target import Target, load_system

# A weight of 40,000 x 10,000 numbers is 1.6 GB; the chip has about 0.9.
GRAPH = """
graph "g" {{
  input %x : f32[1,{rows}]
  weight %w : f32[{rows},{columns}]
  matmul %y : %y : f32[1,{columns}] = (%x, %w) forward chip=0 stage=0
  output %y
}}
"""
STRICT = {"debug.allowOutOfMemory": "false"}


@pytest.fixture(autouse=True)
def _silent_again() -> Iterator[None]:
    yield
    logs.configure({})


def make_cost(rows: int, columns: int) -> ModelledCost:
    graph = parse_graph(GRAPH.format(rows=rows, columns=columns))
    target = Target(load_system("bow-pod16"), 1, 1)
    return ModelledCost(lambda: CostRequest(graph, ModelOptions(), target, "t", "1"))


@pytest.fixture(scope="module")
def large() -> ModelledCost:
    cost = make_cost(40_000, 10_000)
    assert not cost.modelled().simulation.fits
    return cost


def test_a_program_that_only_runs_is_not_modelled() -> None:
    cost = make_cost(16, 8)
    assert compile_program("p", cost, {}, Settings()) is None
    assert cost._modelled is None


def test_log_lines_need_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure({"POPLIBS_LOG_LEVEL": "INFO"})
    compile_program("p", make_cost(16, 8), {}, Settings())
    line = capsys.readouterr().err
    assert "I: poplin::matmul(f32[1,16], f32[16,8]) -> f32[1,8] name=y" in line


def test_what_cannot_be_modelled_is_an_error_in_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> CostRequest:
        raise OutOfMemoryError("no such luck")

    logs.configure({"POPLAR_LOG_LEVEL": "WARN"})
    compile_program("p", ModelledCost(fail), {}, Settings())
    assert "E: p cannot be modelled: no such luck" in capsys.readouterr().err


def test_memory_that_is_missing_is_a_warning(
    large: ModelledCost, capsys: pytest.CaptureFixture[str]
) -> None:
    request = large.request
    logs.configure({"POPLAR_LOG_LEVEL": "WARN"})
    assert compile_program("p", ModelledCost(lambda: request), {}, Settings()) is None
    assert "W: Out of memory on IPU 0: " in capsys.readouterr().err


def test_a_program_that_does_not_fit_is_refused(large: ModelledCost) -> None:
    phrase = "Out of memory: Cannot fit all variable data onto one or more tiles"
    with pytest.raises(OutOfMemoryError, match=phrase) as caught:
        compile_program("p", large, STRICT, Settings())
    assert caught.value.profile_path == ""


def test_its_report_is_about_memory_only(large: ModelledCost, tmp_path: Path) -> None:
    with pytest.raises(OutOfMemoryError, match=r"tiles\. Profile saved to: .*\.pop"):
        compile_program("p", large, STRICT, Settings(report=tmp_path))
    with open_report(tmp_path / "p" / "profile.pop") as report:
        assert len(report.runs) == 0
        assert len(report.steps) == 0
        assert "matmul" in [op.kind for op in report.operations]


def test_by_default_it_is_reported_and_runs(
    large: ModelledCost, tmp_path: Path
) -> None:
    found = compile_program("p", large, {}, Settings(report=tmp_path / "r"))
    assert found is not None
    assert (tmp_path / "r" / "p" / "profile.pop").exists()


def test_strict_settings_refuse_it_too(large: ModelledCost) -> None:
    with pytest.raises(OutOfMemoryError, match="Cannot fit all variable data"):
        compile_program("p", large, {}, Settings(is_strict=True))


@pytest.mark.parametrize(
    ("engine", "is_strict", "way_out"),
    [
        (STRICT, False, "set debug.allowOutOfMemory to true."),
        ({"debug.allowOutOfMemory": "true"}, True, "run it without --strict."),
    ],
)
def test_a_refusal_names_what_made_it(
    large: ModelledCost, engine: dict[str, str], is_strict: bool, way_out: str
) -> None:
    with pytest.raises(OutOfMemoryError, match=re.escape(way_out)):
        compile_program("p", large, engine, Settings(is_strict=is_strict))


def test_who_watches_sees_the_newest_program_of_each_name() -> None:
    first, second = make_cost(16, 8), make_cost(16, 16)
    with watch_programs() as programs:
        compile_program("p", first, {}, Settings())
        compile_program("p", second, {}, Settings())
    compile_program("q", first, {}, Settings())
    assert programs == {"p": second}


def test_a_program_that_fits_is_not_refused() -> None:
    assert compile_program("p", make_cost(16, 8), STRICT, Settings()) is None
