"""Start the instances of a job, wait for them, and stop all when one fails.

options --place_instances--> Placed --agents--> processes --> exit status

Every instance runs under an agent (`agent.py`), on this computer or over ssh. The
launcher keeps the store through which instances find each other. If an instance fails,
the others are stopped and the job's status is that of the first one that failed.
"""

from __future__ import annotations

import collections
import contextlib
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Any, BinaryIO

from popple.distributed.agent import SECONDS_TO_END, Task
from popple.distributed.hosts import address_for
from popple.distributed.layout import (
    Placed,
    common_variables,
    default_threads,
    exported_variables,
    place_instances,
)
from popple.distributed.options import LaunchOptions
from popple.distributed.output import (
    NUM_REMEMBERED,
    LinePrinter,
    OutputRules,
    copy_lines,
)
from popple.distributed.store import StoreServer

INTERRUPTED = 130
_AGENT = "popple.distributed.agent"
# Beyond this an agent that does not answer is killed.
_SECONDS_FOR_AGENT = SECONDS_TO_END + 2.0
# Output that is still on its way when a process ends arrives within this time.
_SECONDS_FOR_OUTPUT = 1.0


@dataclass(frozen=True)
class Ended:
    """An instance that is over, with its exit status."""

    index: int
    status: int


@dataclass(frozen=True)
class Launched:
    """An instance whose agent runs. `errors` are the last lines it has written."""

    placed: Placed
    agent: subprocess.Popen[bytes]
    errors: collections.deque[bytes] = field(
        default_factory=lambda: collections.deque[bytes](maxlen=NUM_REMEMBERED)
    )
    readers: list[threading.Thread] = field(default_factory=list[threading.Thread])

    @property
    def index(self) -> int:
        """Number of the instance."""
        return self.placed.instance.index

    def stop(self) -> None:
        """Let the agent end the instance: the end of its input says so."""
        assert self.agent.stdin is not None
        with contextlib.suppress(OSError):
            self.agent.stdin.close()

    def finish(self, deadline: float) -> None:
        """Wait for the agent; kill it if it does not come to an end."""
        try:
            self.agent.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.agent.kill()
            self.agent.wait()


def launch(
    options: LaunchOptions,
    environ: Mapping[str, str],
    variables: Mapping[str, str],
    say: Callable[[str], None],
    ssh: Sequence[str] = ("ssh", "-o", "BatchMode=yes"),
) -> int:
    """Run the program of the options in all its instances; the status of the job.

    `variables` are given to all instances, besides what the options ask for.
    """
    remote = [each.host for each in place_instances(options) if not each.is_local]
    store = StoreServer(address_for(remote[0])) if remote else StoreServer()
    address = f"{store.host}:{store.port}"
    placed = place_instances(options, address, store.key)
    shared = {**variables, **common_variables(options, environ)}
    rules = output_rules(options, placed, environ)
    job = _Job(say)
    try:
        with _stopped_by_signals(job):
            for each in placed:
                task = make_task(each, options, environ, shared)
                job.add(_start(each, task, ssh), rules)
            return job.wait()
    finally:
        job.stop()
        store.close()


def output_rules(
    options: LaunchOptions, placed: Sequence[Placed], environ: Mapping[str, str]
) -> OutputRules:
    """What is shown of the instances: tagged where there are several to tell apart."""
    words = exported_variables(options.mpi_global_args, environ)[1]
    only = options.only_output_from_instance
    directory = None
    if "--output-filename" in words[:-1]:
        directory = Path(words[words.index("--output-filename") + 1])
    return OutputRules(
        is_tagged="--tag-output" in words or (only < 0 and len(placed) > 1),
        only=only if only >= 0 else None,
        directory=directory,
    )


def make_task(
    placed: Placed,
    options: LaunchOptions,
    environ: Mapping[str, str],
    shared: Mapping[str, str],
) -> Task:
    """What the agent of an instance is told."""
    instance = placed.instance
    # The same computer under several names still has its cores only once.
    threads = default_threads(environ, options.num_instances if placed.is_local else 1)
    return Task(
        command=options.program,
        directory=os.getcwd(),
        variables={**threads, **shared, **instance.variables()},
        numa_index=instance.local_index if options.numa_aware else -1,
    )


def agent_command(placed: Placed, ssh: Sequence[str]) -> list[str]:
    """The command line that starts an agent, here or on another host."""
    if placed.is_local:
        return [sys.executable, "-m", _AGENT]
    # The other host has the same files: what imports the agent here does so there.
    path = os.pathsep.join(filter(None, [_source_root(), os.environ.get("PYTHONPATH")]))
    remote = ["env", f"PYTHONPATH={path}", sys.executable, "-m", _AGENT]
    return [*ssh, placed.host, shlex.join(remote)]


def _source_root() -> str:
    return str(Path(__file__).resolve().parents[2])


def _start(placed: Placed, task: Task, ssh: Sequence[str]) -> Launched:
    agent = subprocess.Popen(
        agent_command(placed, ssh),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert agent.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        agent.stdin.write(task.to_line())
        agent.stdin.flush()
    return Launched(placed, agent)


class _Job:
    """The instances that have been launched, and which of them are over."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._launched: list[Launched] = []
        self._ended: queue.SimpleQueue[Ended | None] = queue.SimpleQueue()
        self._out = LinePrinter(sys.stdout.buffer)
        self._err = LinePrinter(sys.stderr.buffer)

    def add(self, launched: Launched, rules: OutputRules) -> None:
        """Watch an instance and show its output."""
        self._launched.append(launched)
        agent = launched.agent
        assert agent.stdout is not None
        assert agent.stderr is not None
        nowhere = collections.deque[bytes](maxlen=1)
        self._copy(launched, agent.stdout, "stdout", rules, self._out, nowhere)
        self._copy(launched, agent.stderr, "stderr", rules, self._err, launched.errors)
        threading.Thread(target=self._watch, args=(launched,), daemon=True).start()

    def _copy(
        self,
        launched: Launched,
        source: IO[bytes],
        stream: str,
        rules: OutputRules,
        printer: LinePrinter,
        last: collections.deque[bytes],
    ) -> None:
        index = launched.index
        show = printer.write if rules.shows(index) else None
        tag, file = rules.tag(index, stream), _output_file(rules, index, stream)
        thread = threading.Thread(
            target=copy_lines, args=(source, tag, show, last, file), daemon=True
        )
        thread.start()
        launched.readers.append(thread)

    def _watch(self, launched: Launched) -> None:
        status = launched.agent.wait()
        # An agent that was killed itself has a negative status.
        self._ended.put(Ended(launched.index, status if status >= 0 else 128 - status))

    def interrupt(self) -> None:
        """Let `wait` return."""
        self._ended.put(None)

    def wait(self) -> int:
        """Wait until all instances are over, or one has failed; the status."""
        for _ in self._launched:
            ended = self._ended.get()
            if ended is None:
                self._say("interrupted: all instances are stopped.")
                return INTERRUPTED
            if ended.status:
                self.stop()
                self._report(ended)
                return ended.status
        return 0

    def stop(self) -> None:
        """End all instances that still run, and wait for the last of their output."""
        for launched in self._launched:
            launched.stop()
        deadline = time.monotonic() + _SECONDS_FOR_AGENT
        for launched in self._launched:
            launched.finish(deadline)
        limit = time.monotonic() + _SECONDS_FOR_OUTPUT
        for launched in self._launched:
            for reader in launched.readers:
                reader.join(max(0.0, limit - time.monotonic()))

    def _report(self, ended: Ended) -> None:
        launched = self._launched[ended.index]
        others = "" if len(self._launched) == 1 else " All other instances are stopped."
        lines = [line.decode("utf-8", "replace").rstrip() for line in launched.errors]
        while lines and not lines[-1]:
            lines.pop()
        text = "".join(f"\n    {line}" for line in lines) or " nothing."
        self._say(
            f"instance {ended.index} on {launched.placed.host} "
            f"{in_words(ended.status)}.{others} The last it wrote to stderr:{text}"
        )


def in_words(status: int) -> str:
    """What an exit status says."""
    if status <= 128:
        return f"failed with exit status {status}"
    number = status - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"failed with exit status {status}"
    return f"was killed by signal {number} ({name})"


def _output_file(rules: OutputRules, index: int, stream: str) -> BinaryIO | None:
    """Where mpirun keeps the output of an instance, if the user asks for it."""
    if rules.directory is None:
        return None
    folder = rules.directory / "1" / f"rank.{index}"
    folder.mkdir(parents=True, exist_ok=True)
    return (folder / stream).open("wb")


@contextlib.contextmanager
def _stopped_by_signals(job: _Job) -> Generator[None, None, None]:
    """Inside, Ctrl-C and SIGTERM end the job in order."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        job.interrupt()

    numbers = (signal.SIGINT, signal.SIGTERM)
    before: list[Any] = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
