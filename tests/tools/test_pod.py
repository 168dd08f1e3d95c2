"""`popple pod`: pods made, listed, shown and removed in a terminal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from popple.device import Pod, create_partition, find_machine
from popple.tools import cli
from tests.tools.conftest import Popple


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPPLE_STATE", str(tmp_path / "state"))
    for name in ("POPPLE_TARGET", "GRAPHCORE_POD_TYPE"):
        monkeypatch.delenv(name, raising=False)


def say(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What `popple pod` prints."""
    status = cli.main(["pod", *words])
    out, err = capsys.readouterr()
    assert status == (2 if err else 0)
    return out + err


def test_the_life_of_a_pod(capsys: pytest.CaptureFixture[str]) -> None:
    assert "There is no pod" in say(capsys, "list")
    assert say(capsys, "create", "pod16") == (
        "Created pod pod16, a pod16 of 16 chips, for you. Programs attach to it.\n"
    )
    assert "pod16" in say(capsys, "list")
    assert say(capsys, "show", "pod16").endswith("No chip is held.\n")
    assert say(capsys, "remove", "pod16") == "Removed pod pod16.\n"
    assert "There is no pod 'pod16'" in say(capsys, "remove", "pod16")


def test_a_list_says_which_one_is_in_force(capsys: pytest.CaptureFixture[str]) -> None:
    say(capsys, "create", "pod16", "--name", "mine")
    made = say(capsys, "create", "dss8440", "--shared")
    assert "for all users of this host. With --target dss8440, programs" in made
    first, second = say(capsys, "list").splitlines()[2:]
    assert first.split()[:4] == ["mine", "pod16", "16", "own"]
    assert first.endswith("in force")
    assert second.split()[:4] == ["dss8440", "dss8440", "16", "shared"]
    assert "in force" not in second


def test_who_holds_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    say(capsys, "create", "pod16")
    create_partition("p", 2)
    with Pod(find_machine()).acquire(id=5):
        shown = say(capsys, "show", "pod16").splitlines()
        assert "in use by process" in say(capsys, "remove", "pod16")
    assert shown[1] == "partition p: chips 0, 1"
    assert shown[-1].split()[:2] == ["5", str(os.getpid())]


def test_a_kind_that_nobody_knows(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean 'pod16'" in say(capsys, "create", "pd16")


def test_a_program_runs_on_a_pod(popple: Popple, tmp_path: Path) -> None:
    popple("pod", "create", "dss8440", "--name", "old")
    popple("pod", "create", "pod4")
    script = tmp_path / "script.py"
    script.write_text(
        "from popple.device import find_machine\nprint(find_machine().system.name)",
        "utf-8",
    )
    assert popple("run", script).stdout == "pod4\n"
    assert popple("run", "--target", "old", script).stdout == "dss8440\n"
