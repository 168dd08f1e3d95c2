"""poprun's own words: help, version, layout, errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from popple.device import create_partition, find_partition
from popple.distributed.options import KINDS, flag
from popple.tools.poprun import main

SHOW = """
import os
from popple.device import get_partition
name = os.environ["IPUOF_VIPU_API_PARTITION_ID"]
print(name, get_partition(name).num_chips)
"""


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in KINDS if flag(name) not in shown] == []
    assert "--num-replicas              replicas of all instances [1]" in shown


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("poprun ")
    assert main(["--version", "--version-format=full-json"]) == 0
    assert "popdist" in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("words", [[], ["--num-replicas", "2"], ["--wheels", "4"]])
def test_refusals_are_one_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("poprun: error: ")
    assert shown.count("\n") == 1


def test_options_can_be_kept_without_a_program(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    assert main(["--num-replicas=2", f"--export-config={path}"]) == 0
    assert json.loads(path.read_text()) == {"num-replicas": 2}


def test_the_layout_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    options = ["--num-instances=2", "--num-replicas=4", "--print-topology=yes"]
    assert main([*options, "-v", "--mpi-global-args=--mca a b", "true"]) == 0
    shown = capfd.readouterr().err
    assert "poprun: 2 instances" in shown
    assert "2-3" in shown
    assert "which is not used here: --mca a b" in shown


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPPLE_STATE", str(tmp_path))


@pytest.mark.usefixtures("state")
def test_a_partition_lives_as_long_as_its_job(
    capfd: pytest.CaptureFixture[str],
) -> None:
    show = [sys.executable, "-c", SHOW]
    # Three replicas of two IPUs are six, and partitions have powers of two.
    options = ["--num-replicas=3", "--ipus-per-replica=2", "--vipu-partition=p1"]
    assert main([*options, *show]) == 0
    assert capfd.readouterr().out == "p1 8\n"
    assert find_partition("p1") is None
    assert main([*options, "--remove-partition=no", *show]) == 0
    assert find_partition("p1") is not None


@pytest.mark.usefixtures("state")
def test_a_partition_that_is_too_small(capfd: pytest.CaptureFixture[str]) -> None:
    create_partition("p1", 2)
    options = ["--num-replicas=4", "--vipu-partition=p1"]
    assert main([*options, "true"]) == 2
    assert "has 2 IPUs, the job needs 4" in capfd.readouterr().err
    assert main([*options, "--update-partition=yes", "true"]) == 0
    found = find_partition("p1")
    assert found is not None
    assert found.num_chips == 4
