"""Leases between real processes, one of which is killed.

The processes talk over pipes: a line from the other one says how far it is.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from popple.device import Pod
from popple.errors import DeviceError
from popple.target import load_system

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills with signals")

HOLD = """
import os, sys
from pathlib import Path
from popple.device import Pod
from popple.target import load_system

lease = Pod(load_system("bow-pod4"), Path(sys.argv[1])).acquire(id=4)
{body}
"""

WAIT = 'print("held", flush=True); sys.stdin.read()'

# The child outlives the parent that is killed, and ends when our pipe closes.
FORK = """
if os.fork() == 0:
    assert not lease.is_held
    print("held", flush=True)
    sys.stdin.read()
    os._exit(0)
os.wait()
"""

# The end of the child's block must not take the lease from the parent.
FORK_AND_EXIT = """
child = os.fork()
if child == 0:
    with lease:
        pass
    sys.exit(0)
os.waitpid(child, 0)
print("held", flush=True)
sys.stdin.read()
"""

# Killed inside the guard, where everybody else waits for it.
GUARD = """
from popple.device.registry import Registry
with Registry(Path(sys.argv[1])).guard():
    print("held", flush=True)
    sys.stdin.read()
"""

RACE = """
import sys
from pathlib import Path
from popple.device import Pod
from popple.target import load_system

pod = Pod(load_system("bow-pod4"), Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
lease = pod.acquire()
print(lease.device.id, flush=True)
sys.stdin.readline()
"""

Starter = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts processes that have taken chips 0 and 1 once this returns."""
    started: list[subprocess.Popen[str]] = []

    def start_holder(body: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD.format(body=body), str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield start_holder
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(load_system("bow-pod4"), tmp_path)


def test_another_process_cannot_take_a_held_chip(start: Starter, pod: Pod) -> None:
    holder = start(WAIT)
    with pytest.raises(DeviceError, match=f"is held by process {holder.pid} "):
        pod.acquire(id=1)
    with pod.acquire() as lease:
        assert lease.device.chip_ids == (2,)


def test_holders_of_other_processes(start: Starter, pod: Pod) -> None:
    holder = start(WAIT)
    found = [(h.chip_id, h.pid) for h in pod.holders()]
    assert found == [(0, holder.pid), (1, holder.pid)]
    assert all(" -c " in h.command for h in pod.holders())


def test_a_process_that_ends_lets_go(start: Starter, pod: Pod) -> None:
    holder = start(WAIT)
    holder.communicate("")
    assert holder.returncode == 0
    assert pod.holders() == ()


def test_a_killed_process_lets_go(start: Starter, pod: Pod) -> None:
    holder = start(WAIT)
    holder.kill()
    holder.wait()
    with pod.acquire(num_chips=4) as lease:
        assert lease.device.id == 6


def test_a_killed_process_lets_go_though_its_child_lives(
    start: Starter, pod: Pod
) -> None:
    holder = start(FORK)
    assert len(pod.holders()) == 2
    holder.kill()
    holder.wait()
    assert pod.holders() == ()


def test_a_child_cannot_release_its_parents_lease(start: Starter, pod: Pod) -> None:
    holder = start(FORK_AND_EXIT)
    assert [h.pid for h in pod.holders()] == [holder.pid, holder.pid]


def test_a_process_killed_inside_the_guard_lets_go(start: Starter, pod: Pod) -> None:
    holder = start(GUARD)
    holder.kill()
    holder.wait()
    assert pod.holders() == ()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def send_line(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_processes_that_race_hold_different_chips(pod: Pod, tmp_path: Path) -> None:
    command = [sys.executable, "-c", RACE, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen(command, **pipes) for _ in range(4)]
    try:
        assert [read_line(racer) for racer in racers] == ["ready"] * 4
        for racer in racers:
            send_line(racer)
        assert sorted(map(read_line, racers)) == ["0", "1", "2", "3"]
        assert {h.pid for h in pod.holders()} == {racer.pid for racer in racers}
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
