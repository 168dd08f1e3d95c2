"""`popple advise`, and what `popple run` says at its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from popple.pipeline import model_graph, write_report
from popple.tools import advise
from popple.tools.cli import main
from tests.advice.stacks import stack_case
from tests.tools.conftest import Popple

# 13 MB of weights; a chip of 16 tiles has 10 MB.
SMALL = 'base = "pod16"\n[chip]\nbase = "bow"\nnum_tiles = 16\n'
TOO_LARGE = """
import poptorch, torch
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(3)))
options = poptorch.Options().showCompilationProgressBar(False)
y = poptorch.inferenceModel(model, options)(torch.zeros(1, 1024))
print("zeros" if not y.any() else "computed")
"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """The report of a program that does not fit."""
    case = stack_case(3)
    modelled = model_graph(case.graph, case.target, case.options)
    write_report(modelled, tmp_path, framework="poptorch", framework_version="1")
    return tmp_path


def test_advice_on_a_report(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", str(report)]) == 0
    text = capsys.readouterr().out
    assert "stack does not fit on 1 IPU" in text
    assert "useOnChipStorage(False)" in text
    assert "optimiser state" in text


def test_advice_as_json(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--json", str(report)]) == 0
    (advice,) = json.loads(capsys.readouterr().out).values()
    assert advice["remedies"][0]["outcome"]["fits"]


def test_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise"]) == 2
    assert "Give a report or a script" in capsys.readouterr().err


def small_machine(tmp_path: Path) -> list[str]:
    """The words for a machine of small chips, on which the script does not fit."""
    (tmp_path / "large.py").write_text(TOO_LARGE, encoding="utf-8")
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    return ["--target", "small.toml"]


def test_a_script_is_modelled_not_run(popple: Popple, tmp_path: Path) -> None:
    words = [*small_machine(tmp_path), "--model-only"]
    done = popple("run", *words, tmp_path / "large.py")
    assert done.stdout == "zeros\n"
    assert "popple: inference does not fit on 1 IPU" in done.stderr
    assert "Memory by role" in done.stderr


def test_advice_on_a_script(popple: Popple, tmp_path: Path) -> None:
    done = popple("advise", *small_machine(tmp_path), tmp_path / "large.py")
    assert done.returncode == 0, done.stderr
    assert "a pipeline over" in done.stdout
    assert "poptorch.BeginBlock(model[" in done.stdout


def test_progress_is_for_terminals(capsys: pytest.CaptureFixture[str]) -> None:
    advise.say("something")
    assert capsys.readouterr().err == ""
