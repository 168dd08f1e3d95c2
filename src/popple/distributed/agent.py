"""Runs beside an instance on its host: starts it, watches it and ends it.

The launcher starts one agent per instance, here or over ssh, and writes one line of
JSON to its standard input: command, directory, variables, NUMA binding. Output of the
instance is the agent's own. When the input ends, because the launcher wants it or
because the launcher or the connection is gone, the agent ends the instance with all
processes it has started: no orphan survives its launcher.

The agent's exit status is the instance's; 128 + n if signal n killed it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

SECONDS_TO_END = 3.0
"""How long an instance has to end itself after SIGTERM."""

NOT_STARTED = 127
_NODES = Path("/sys/devices/system/node")
# PR_SET_PDEATHSIG of prctl(2): the kernel ends an instance whose agent is killed.
_DEATH_SIGNAL = 1


@dataclass(frozen=True)
class Task:
    """What an agent is to run. `numa_index` counts the instances of a host, or -1."""

    command: Sequence[str]
    directory: str
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    numa_index: int = -1

    def to_line(self) -> bytes:
        """The task as the agent reads it."""
        return json.dumps(asdict(self)).encode() + b"\n"


def run_task(task: Task, wait_for_end: Callable[[], None]) -> int:
    """Run the instance until it is over or `wait_for_end` returns; its exit status."""
    try:
        process = _start(task)
    except OSError as error:
        sys.stderr.write(f"poprun: {task.command[0]} cannot be started: {error}\n")
        return NOT_STARTED
    watcher = threading.Thread(
        target=lambda: (wait_for_end(), _end(process)), daemon=True
    )
    watcher.start()
    status = process.wait()
    # What the instance has started, such as the workers of a loader, ends with it.
    _signal_group(process.pid, signal.SIGKILL)
    return status if status >= 0 else 128 - status


def _start(task: Task) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **task.variables}
    return subprocess.Popen(
        task.command,
        cwd=task.directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        # A session of its own: Ctrl-C reaches the launcher alone, which ends all
        # instances in order.
        start_new_session=True,
        preexec_fn=_preparation(task.numa_index),
    )


def _preparation(numa_index: int) -> Callable[[], None] | None:
    """What a new process does before it becomes the instance: Linux alone has it."""
    if sys.platform != "linux":
        return None
    nodes = numa_nodes() if numa_index >= 0 else []
    cores = nodes[numa_index % len(nodes)] if nodes else None
    # Loaded here: between fork and exec a process should do as little as it can.
    prctl = ctypes.CDLL(None).prctl

    def prepare() -> None:
        prctl(_DEATH_SIGNAL, signal.SIGKILL)
        if cores is not None:
            os.sched_setaffinity(0, cores)

    return prepare


def numa_nodes(directory: Path = _NODES) -> list[set[int]]:
    """The cores of each NUMA node of this computer."""
    files = sorted(directory.glob("node[0-9]*/cpulist"), key=_node_number)
    return [cores for file in files if (cores := _cores(file.read_text("ascii")))]


def _node_number(file: Path) -> int:
    return int(file.parent.name.removeprefix("node"))


def _cores(text: str) -> set[int]:
    """`0-3,8` are 0, 1, 2, 3 and 8."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            found.update(range(int(first), int(last or first) + 1))
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    _signal_group(process.pid, signal.SIGTERM)
    try:
        process.wait(SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        _signal_group(process.pid, signal.SIGKILL)


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def main() -> int:
    """Read the task from standard input and run it."""
    task = Task(**json.loads(sys.stdin.buffer.readline()))

    def wait_for_end() -> None:
        while sys.stdin.buffer.read(1):
            pass

    return run_task(task, wait_for_end)


if __name__ == "__main__":
    # Not sys.exit: the watching thread may sit in a read of standard input, which
    # Python would wait for.
    status = main()
    sys.stderr.flush()
    os._exit(status)
