"""`popple explain`: over one report and several, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from popple.graph import parse_graph
from popple.pipeline import model_graph, write_report
from popple.target import load_target
from popple.tools import cli

GRAPH = """
graph "infer" {{
  input %x : f32[2,64]
  weight %w : f32[64,32]
  matmul %{name} : %{name} : f32[2,32] = (%x, %w) forward chip=0 stage=0 in "fc"
  relu %z : %z : f32[2,32] = (%{name}) forward chip=0 stage=0
  output %z
}}
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two reports in one directory, whose products have different names."""
    directory = tmp_path_factory.mktemp("reports")
    for name in ("left", "right"):
        graph = parse_graph(GRAPH.format(name=name))
        model = model_graph(graph, load_target("bow"))
        write_report(model, directory / name, framework="", framework_version="")
    return directory


def test_an_operation_is_explained(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["explain", str(both / "left"), "left"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(str(both / "left"))
    assert "Plan, by the rule matmul" in text
    assert "Plans not taken" in text


def test_only_reports_that_know_the_name_are_printed(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["explain", "--json", str(both), "right"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"right"}


def test_without_a_name_the_costliest_are_listed(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["explain", str(both)]) == 0
    text = capsys.readouterr().out
    assert text.count("bound by") >= 2
    assert "host streams" in text


def test_an_unknown_name_is_refused_with_a_near_one(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["explain", str(both / "left"), "lefft"]) == 2
    assert "Did you mean 'left'?" in capsys.readouterr().err
