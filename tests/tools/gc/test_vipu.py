"""vipu, gc-docker and gc-podman."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from popple.device import Pod, find_machine
from popple.tools.gc import container
from popple.tools.gc.vipu import config_path
from tests.tools.gc.conftest import Run


def test_a_partition_comes_and_goes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    status, out, _ = run(
        "vipu", "create", "partition", "p1", "--size", "4", "--reconfigurable"
    )
    assert (status, out) == (0, "create partition (p1): success.\n")
    _, out, _ = run("vipu", "list", "partitions")
    row = [cell.strip() for cell in out.splitlines()[3].split("|")]
    assert (row[0], row[5], row[7]) == ("p1", "4", "ACTIVE")
    monkeypatch.setenv("IPUOF_VIPU_API_PARTITION_ID", "p1")
    assert len(Pod(find_machine()).devices) == 7
    assert run("vipu", "remove", "partition", "p1")[0] == 0
    assert run("info", "-l")[0] == 3


def test_a_partition_is_found_by_its_file(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("vipu", "create", "partition", "p2", "--size", "2")
    path = config_path("p2")
    assert path.name == "p2_gcd0_ipuof.conf"
    assert len(json.loads(path.read_text(encoding="utf-8"))["devices"]) == 2
    monkeypatch.setenv("IPUOF_CONFIG_PATH", str(path))
    assert "Partition: p2 [active]\n" in run("info", "-l")[1]
    monkeypatch.delenv("IPUOF_CONFIG_PATH")
    run("vipu", "remove", "partition", "p2")
    assert not path.exists()


def test_a_partition_in_use_is_kept(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("vipu", "create", "partition", "p1", "--size", "2")
    monkeypatch.setenv("IPUOF_VIPU_API_PARTITION_ID", "p1")
    with Pod(find_machine()).acquire(id=0):
        status, _, err = run("vipu", "remove", "partition", "p1")
        assert status == 3
        assert "is in use by process" in err
        assert run("vipu", "remove", "partition", "p1", "--force")[0] == 0


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["create", "partition", "p1", "--size", "3"], 3),
        (["create", "partition", "p1"], 2),
        (["create", "partition"], 2),
        (["create", "allocation", "x"], 2),
        (["remove", "partition", "nowhere"], 3),
        ([], 2),
        (["list"], 2),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: list[str], status: int, run: Run
) -> None:
    assert run("vipu", *words)[0] == status


def test_the_server_as_examples_utils_parses_it(run: Run) -> None:
    _, out, _ = run("vipu", "--server-version")
    assert re.findall(r"host: (.*):", out) == ["localhost"]
    assert out.startswith("version: ")


def test_attributes_of_all_ipus(run: Run) -> None:
    _, out, _ = run("vipu", "list", "ipu-attrs")
    rows = [[cell.strip() for cell in line.split("|")] for line in out.splitlines()]
    assert ["ag0", "0", "id", "0"] in rows
    assert ["", "", "clock", "1850MHz"] in rows


def test_allocations(run: Run) -> None:
    _, out, _ = run("vipu", "list", "allocations")
    assert " Allocation ID " in out
    assert "ag0 ag1 ag2 ag3" in out


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_a_container_shares_the_locks(engine: str, run: Run, state: Path) -> None:
    words = ["--echo", "--", "-it", "--rm", "image"]
    status, out, _ = run(engine, *words)
    command = shlex.split(out)
    assert status == 0
    assert command[:2] == [engine, "run"]
    assert f"POPPLE_STATE={state}" in command
    assert command[-3:] == ["-it", "--rm", "image"]


def test_cards_have_four_files_each(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPPLE_TARGET", "dss8440")
    _, out, _ = run("docker", "--device-id", "16", "--echo", "--", "image")
    files = [w for w in shlex.split(out) if w.startswith("--device=")]
    assert files == [
        f"--device=/dev/ipu{ipu}{suffix}"
        for ipu in (5, 7)
        for suffix in ("", "_ex", "_mailbox", "_mem")
    ]


def test_a_container_without_its_program(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container.shutil, "which", lambda name: None)
    status, _, err = run("docker", "--", "image")
    assert status == 2
    assert "docker is not installed" in err
    assert run("podman")[0] == 2


def test_files_of_cards_that_are_not_there_are_left_out(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.setenv("POPPLE_TARGET", "c2")
    monkeypatch.setattr(container.shutil, "which", lambda name: name)
    monkeypatch.setattr(container.subprocess, "call", lambda c: started.append(c) or 5)
    status, _, err = run("docker", "--", "image")
    assert status == 5
    assert not any(word.startswith("--device=") for word in started[0])
    assert "no files in /dev" in err
