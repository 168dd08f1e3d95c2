"""`popple doctor`: findings for what is there, missing and broken."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from popple.errors import DeviceError
from popple.tools import cli, doctor, installed


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """All distributions at version 1.0, no programs, devices that nobody else uses."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(doctor, "find_version", lambda name: "1.0")
    monkeypatch.setattr(doctor, "find_program", lambda names: None)
    return monkeypatch


def test_a_healthy_machine_works(
    only: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor"]) == 0
    assert "works here." in capsys.readouterr().out


def test_a_missing_framework_is_no_fault_and_has_a_remedy(
    only: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only.setattr(
        doctor, "find_version", lambda name: None if name == "tensorflow" else "1.0"
    )
    assert cli.main(["doctor"]) == 0
    assert "pip install 'popple[tensorflow]'" in capsys.readouterr().out


def test_without_any_framework_no_program_runs(
    only: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = {"torch", "tf_keras"}  # TensorFlow alone runs none for the IPU
    only.setattr(
        doctor, "find_version", lambda name: None if name in missing else "1.0"
    )
    assert cli.main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert "runs no programs: install a framework." in told
    assert "https://download.pytorch.org/whl/cpu" in told


def test_a_missing_core_package_is_a_fault(
    only: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only.setattr(
        doctor, "find_version", lambda name: None if name == "numpy" else "1.0"
    )
    assert cli.main(["doctor"]) == 1
    assert "does not work here" in capsys.readouterr().out


def test_an_unsupported_python_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 0))
    (finding,) = doctor.check_python()
    assert finding.state == "broken"
    assert "3.10" in finding.remedy


def test_an_unknown_default_target_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPPLE_TARGET", "bow-pd16")
    loads, default = doctor.check_targets()
    assert loads.state == "ok"
    assert default.state == "broken"
    assert "'bow-pod16'" in default.remedy


def test_an_error_keeps_its_place_and_remedy() -> None:
    def fail() -> str:
        raise DeviceError("No.", where="/lock", remedy="Make room.")

    found = doctor.attempt("locks", fail)
    assert found == doctor.Finding("locks", "broken", "No. (/lock)", "Make room.")


def test_every_extra_named_is_one_of_the_project() -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    for package in doctor.PACKAGES:
        assert f"\n{package.extra} = [" in project


def test_a_program_says_its_version(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\necho tool 1.2\n")
    program.chmod(0o755)
    assert installed.ask_version(str(program)) == "tool 1.2"


def test_a_program_that_does_not_start_says_so(tmp_path: Path) -> None:
    assert "does not start" in installed.ask_version(str(tmp_path / "nosuch"))


def test_an_unknown_distribution_has_no_version() -> None:
    assert installed.find_version("popple-no-such-thing") is None
