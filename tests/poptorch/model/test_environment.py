"""Variables of the environment that a PopTorch program sees the effect of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import popple
import poptorch
from popple import logs
from popple.program import StreamCopy
from popple.sim import Simulation
from tests.poptorch.models import Scale, options

X = torch.ones(2)
TOO_LARGE = "Out of memory: Cannot fit all variable data onto one or more tiles"


@pytest.fixture(autouse=True)
def _silent_again() -> Iterator[None]:
    yield
    logs.configure({})


@pytest.fixture
def too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program fits."""
    monkeypatch.setattr(Simulation, "fits", property(lambda self: False))


def set_engine(monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
    given = {"debug.allowOutOfMemory": "false", **more}
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps(given))


def num_streams(opts: poptorch.Options) -> int:
    model = poptorch.inferenceModel(Scale(), opts)
    model(X)
    steps = (row.step for row in popple.modelled(model).simulation.steps)
    return sum(isinstance(step, StreamCopy) for step in steps)


def test_log_lines_of_a_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "INFO")
    monkeypatch.setenv("POPLIBS_LOG_LEVEL", "INFO")
    poptorch.inferenceModel(Scale(), options())(X)
    lines = capsys.readouterr().err
    for text in ("I: Compiling inference", "PL:POPOPS", "I: Running inference"):
        assert text in lines


def test_a_file_of_log_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "INFO")
    monkeypatch.setenv("POPLAR_LOG_DEST", str(tmp_path / "log"))
    poptorch.inferenceModel(Scale(), options())(X)
    assert "Running inference" in (tmp_path / "log").read_text()


def test_a_wrong_level_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "LOUD")
    with pytest.raises(poptorch.Error, match="'LOUD' is not a level"):
        poptorch.inferenceModel(Scale(), options())(X)


@pytest.mark.usefixtures("too_large")
def test_a_model_that_does_not_fit_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directory = tmp_path / "report_OOM"
    more = {"autoReport.all": "true", "autoReport.directory": str(directory)}
    set_engine(monkeypatch, **more)
    with pytest.raises(poptorch.Error, match=TOO_LARGE) as caught:
        poptorch.inferenceModel(Scale(), options())(X)
    path = directory / "inference" / "profile.pop"
    assert f"tiles. Profile saved to: {path}\n" in str(caught.value)
    assert path.exists()


@pytest.mark.usefixtures("too_large")
def test_it_runs_by_default_and_on_the_ipu_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert poptorch.inferenceModel(Scale(), options())(X) is not None
    set_engine(monkeypatch)
    model = poptorch.inferenceModel(Scale(), options().useIpuModel(True))
    assert model(X) is not None


def test_synthetic_data_do_not_travel() -> None:
    assert num_streams(options()) == 2
    assert num_streams(options().enableSyntheticData(True)) == 0
