"""gc-monitor: its tables, and the ways in which other programs read it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from popple.device import Pod, find_machine
from popple.tools.gc.boxes import draw_box
from popple.tools.gc.monitor import render_time
from tests.tools.gc.conftest import Run

MONITOR = [sys.executable, "-m", "popple.tools.gc.monitor"]


def count_ipus_in_use(text: str) -> int:
    """As examples-utils counts: columns `cards.ipus.PID` that are not null."""
    cards = json.loads(text)["cards"]
    return sum(ipu.get("PID") is not None for card in cards for ipu in card["ipus"])


def test_rows_are_laid_out_as_in_the_manual() -> None:
    cells = ["10.1.5.10", "0024.0002.8203321", "2.5.0", "1.9.0", "2.4.4", "M2000"]
    widths = [13, 20, 8, 14, 10, 6]
    expected = "|  10.1.5.10  | 0024.0002.8203321  | 2.5.0  |    1.9.0     |  2.4.4   |"
    assert draw_box(cells, widths) == expected + "M2000 |"


def test_cards_come_four_to_a_machine(run: Run) -> None:
    _, out, _ = run("monitor")
    lines = out.splitlines()
    title = "Partition: bow-pod16 (gcd:0) [active] has 16 reconfigurable IPUs"
    assert lines[1].startswith("|  gc-monitor   |")
    assert title in lines[1]
    assert lines[3] == (
        "|    IPU-M    |       Serial       |IPU-M SW|Server version|  ICU FW  "
        "| Type | ID | IPU# |Routing|"
    )
    groups = "\n".join(lines[5:]).split(lines[2])
    assert [group.count("M2000") for group in groups[:4]] == [4, 4, 4, 4]
    assert len({len(line) for line in lines[:25]}) == 1


def test_processes_have_one_line_per_ipu_and_boards_one(run: Run) -> None:
    with Pod(find_machine()).acquire(num_chips=4):
        _, out, _ = run("monitor", "--no-card-info")
    rows = [line for line in out.splitlines() if f" {os.getpid()} " in line]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert [row[4] for row in cells] == ["0", "1", "2", "3"]
    assert [row[5] for row in cells] == ["1850MHz"] * 4
    assert [bool(row[8]) for row in cells] == [True, False, True, False]
    assert "Attached processes in partition bow-pod16" in out


def test_nothing_is_shown_of_a_process_that_holds_nothing(run: Run) -> None:
    status, out, _ = run("monitor", "--no-card-info")
    assert status == 0
    assert str(os.getpid()) not in out
    assert "PID" not in out


def test_json_as_examples_utils_reads_it(run: Run) -> None:
    assert count_ipus_in_use(run("monitor", "--json")[1]) == 0
    with Pod(find_machine()).acquire(num_chips=2):
        text = run("monitor", "--json")[1]
    assert count_ipus_in_use(text) == 2
    assert [len(card["ipus"]) for card in json.loads(text)["cards"]] == [4] * 4


def test_a_job_is_seen_while_it_runs_and_not_after(
    run_json: Callable[..., Any],
) -> None:
    code = "import popple.device as d; l = d.Pod(d.find_machine()).acquire(2); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code + "; print()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as job:
        assert job.stdin is not None
        seen: set[str] = set()
        while job.poll() is None and not seen:
            seen = pids_of(run_json("monitor"))
        job.stdin.write("\n")
        job.stdin.flush()
        job.wait()
    assert seen == {str(job.pid)}
    assert pids_of(run_json("monitor")) == set()


def pids_of(found: Any) -> set[str]:
    ipus = (ipu for card in found["cards"] for ipu in card["ipus"])
    return {ipu["PID"] for ipu in ipus if "PID" in ipu}


def test_programs_on_copies_of_the_default_machine_are_seen(run: Run) -> None:
    held = Pod(find_machine()).acquire(num_chips=16)
    code = (
        "import popple.device as d; p = d.Pod(d.find_machine()); l = p.acquire(16); "
        "import subprocess, sys; subprocess.run(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *MONITOR, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    held.release()
    assert count_ipus_in_use(done.stdout) == 32


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = " ".join([*MONITOR, "|", "head", "-1"])
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("+---")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0s"), (10, "10s"), (241, "4m1s"), (3720, "1h2m"), (90000, "1d1h")],
)
def test_time_since_attaching(seconds: int, expected: str) -> None:
    assert render_time(seconds) == expected
