"""Jobs of several processes: output, failures, signals, orphans, other hosts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from popple.distributed.instance import Instance
from popple.distributed.launcher import agent_command, in_words
from popple.distributed.layout import Placed
from tests.distributed.jobs import command, instances, poprun

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

RANK = "import os; rank = int(os.environ['OMPI_COMM_WORLD_RANK']);"
# Waits for ever; the file it makes tells that it runs, and its number.
WAIT = f"""{RANK}
import pathlib, signal, sys
path = pathlib.Path(sys.argv[1]) / f"{{rank}}"
path.with_suffix(".new").write_text(str(os.getpid()))
path.with_suffix(".new").rename(path)
print("waiting", file=sys.stderr, flush=True)
signal.pause()
"""


def wait_until_running(folder: Path, job: subprocess.Popen[str], count: int) -> None:
    """Wait until the instances of WAIT run."""
    while not all((folder / str(rank)).exists() for rank in range(count)):
        assert job.poll() is None
        os.sched_yield()


def pids(folder: Path, count: int) -> list[int]:
    return [int((folder / str(rank)).read_text()) for rank in range(count)]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def start(folder: Path, count: int) -> subprocess.Popen[str]:
    job = subprocess.Popen(
        command(WAIT, *instances(count), arguments=[str(folder)]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until_running(folder, job, count)
    return job


def test_lines_are_tagged_by_instance() -> None:
    done = poprun(
        f"{RANK} import sys; print(rank); sys.stderr.write('e')", *instances(2)
    )
    assert sorted(done.stdout.splitlines()) == ["[1,0]<stdout>:0", "[1,1]<stdout>:1"]
    assert sorted(done.stderr.splitlines()) == ["[1,0]<stderr>:e", "[1,1]<stderr>:e"]
    assert done.returncode == 0


def test_one_instance_is_not_tagged() -> None:
    assert poprun("print('plain')").stdout == "plain\n"
    done = poprun("print('tagged')", "--mpi-global-args", "--tag-output")
    assert done.stdout == "[1,0]<stdout>:tagged\n"


def test_output_of_one_instance() -> None:
    done = poprun(f"{RANK} print(rank)", *instances(3), "--only-output-from-instance=1")
    assert done.stdout == "1\n"


def test_output_is_kept_in_files(tmp_path: Path) -> None:
    option = f"--mpi-global-args=--output-filename {tmp_path}"
    poprun(f"{RANK} print(rank)", *instances(2), option)
    assert (tmp_path / "1" / "rank.1" / "stdout").read_text() == "1\n"


def test_instances_know_their_numbers() -> None:
    program = """
import os, popdist as p
print(p.getInstanceIndex(), p.getNumInstances(), p.getNumLocalReplicas(),
      p.getLocalInstanceIndex(), p.getNumIpusPerReplica(), os.environ["A"],
      os.environ["OMP_NUM_THREADS"], os.environ["POPTORCH_CACHE_DIR"])
"""
    options = ["--ipus-per-replica=2", "--mpi-local-args=-x A=b"]
    done = poprun(
        program,
        *instances(2, 4),
        *options,
        "--executable-cache-path=/cache",
        environ={**os.environ, "OMP_NUM_THREADS": "3"},
    )
    lines = sorted(line.partition(":")[2] for line in done.stdout.splitlines())
    assert lines == ["0 2 2 0 2 b 3 /cache", "1 2 2 1 2 b 3 /cache"]


def test_aliases_of_one_host() -> None:
    program = "import popdist; print(popdist.getLocalInstanceIndex())"
    options = ["--host", "localhost", "--host", "127.0.0.1"]
    done = poprun(program, *instances(2), *options)
    assert sorted(done.stdout.splitlines()) == ["[1,0]<stdout>:0", "[1,1]<stdout>:0"]


def test_a_failure_stops_the_others() -> None:
    program = f"""{RANK}
import signal
if rank == 1: raise ValueError("no luck")
signal.pause()
"""
    done = poprun(program, *instances(3))
    assert done.returncode == 1
    assert "instance 1 on localhost failed with exit status 1." in done.stderr
    assert done.stderr.rstrip().endswith("    ValueError: no luck")


def test_the_exit_status_is_the_programs() -> None:
    assert poprun("raise SystemExit(7)", *instances(2)).returncode == 7


def test_a_program_that_is_not_there() -> None:
    done = subprocess.run(
        [*command("", *instances(2))[:-3], "no-such-program"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 127
    assert "no-such-program cannot be started" in done.stderr


@linux
def test_a_killed_instance_is_named(tmp_path: Path) -> None:
    job = start(tmp_path, 3)
    running = pids(tmp_path, 3)
    os.kill(running[2], signal.SIGKILL)
    _, errors = job.communicate()
    assert job.returncode == 128 + 9
    assert "instance 2 on localhost was killed by signal 9 (SIGKILL)" in errors
    assert not any(map(is_running, running))


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_all_instances(tmp_path: Path, number: int) -> None:
    job = start(tmp_path, 2)
    running = pids(tmp_path, 2)
    job.send_signal(number)
    _, errors = job.communicate()
    assert job.returncode == 130
    assert "interrupted" in errors
    assert not any(map(is_running, running))


@linux
def test_no_instance_survives_its_launcher(tmp_path: Path) -> None:
    job = start(tmp_path, 2)
    running = pids(tmp_path, 2)
    job.kill()
    job.communicate()
    while any(map(is_running, running)):  # ends, or the test's own limit does
        os.sched_yield()


@linux
def test_what_an_instance_starts_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "child"
    program = f"""
import subprocess, pathlib, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
pathlib.Path({str(path)!r}).write_text(str(child.pid))
"""
    poprun(program)
    pid = int(path.read_text())
    while is_running(pid):
        os.sched_yield()


def test_other_hosts_are_reached_by_ssh(tmp_path: Path) -> None:
    # This ssh runs the command here, but says for whom, as the real one would not.
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nshift 2\nFOR_HOST="$1" exec sh -c "$2"\n')
    ssh.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    program = "import os, popdist; popdist.init(); print(os.environ['FOR_HOST'])"
    environ = {**os.environ, "PATH": path}
    done = poprun(program, *instances(2), "--host=node[1-2]", environ=environ)
    assert sorted(done.stdout.splitlines()) == [
        "[1,0]<stdout>:node1",
        "[1,1]<stdout>:node2",
    ]


def test_the_command_for_another_host() -> None:
    found = agent_command(Placed(Instance(), "node1"), ("ssh",))
    assert found[:2] == ["ssh", "node1"]
    assert "env PYTHONPATH=" in found[2]
    assert found[2].endswith("-m popple.distributed.agent")


def test_statuses_in_words() -> None:
    assert in_words(3) == "failed with exit status 3"
    assert in_words(137) == "was killed by signal 9 (SIGKILL)"
    assert in_words(255) == "failed with exit status 255"
