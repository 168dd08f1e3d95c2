"""Trace points from program to file."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import libpvti
from libpvti._options import Options
from libpvti._session import Session
from libpvti._tracing import TRACING
from popple.errors import ReportError
from popple.trace import Kind, Trace, read_trace

Finish = Callable[[], Trace]


def labels_of(trace: Trace) -> list[tuple[Kind, str, str]]:
    return [(p.kind, p.channel, p.label) for p in trace.batch.points]


def test_points_and_contexts_are_written_in_order(finish: Finish) -> None:
    channel = libpvti.createTraceChannel("App")
    with libpvti.Tracepoint(channel, "epoch"):
        libpvti.Tracepoint.begin(channel, "step")
        libpvti.Tracepoint.end(channel, "step")
        libpvti.Tracepoint.event(channel, "note")
    trace = finish()
    assert labels_of(trace) == [
        (Kind.BEGIN, "App", "epoch"),
        (Kind.BEGIN, "App", "step"),
        (Kind.END, "App", "step"),
        (Kind.INSTANT, "App", "note"),
        (Kind.END, "App", "epoch"),
    ]
    times = [point.time_ns for point in trace.batch.points]
    assert times == sorted(times)
    assert trace.process_id == os.getpid()


def test_a_context_ends_with_an_exception(finish: Finish) -> None:
    channel = libpvti.createTraceChannel("App")
    with pytest.raises(ValueError, match="x"), libpvti.Tracepoint(channel, "a"):
        raise ValueError("x")
    assert [kind for kind, *_ in labels_of(finish())] == [Kind.BEGIN, Kind.END]


def test_threads_are_told_apart(finish: Finish) -> None:
    channel = libpvti.createTraceChannel("App")
    event = libpvti.Tracepoint.event
    worker = threading.Thread(target=event, args=(channel, "a"), name="worker")
    worker.start()
    worker.join()
    event(channel, "b")
    trace = finish()
    names = [trace.batch.thread_names[p.thread_id] for p in trace.batch.points]
    assert names == ["worker", threading.current_thread().name]


def test_channels_are_switched(finish: Finish) -> None:
    channel = libpvti.createTraceChannel("App")
    assert libpvti.createTraceChannel("App") is channel
    libpvti.disableTraceChannel(channel)
    libpvti.Tracepoint.event(channel, "off")
    assert not libpvti.checkTraceChannel(channel)
    libpvti.enableTraceChannel(channel)
    libpvti.Tracepoint.event(channel, "on")
    assert libpvti.listTraceChannel() == [["App", True]]
    assert [label for *_, label in labels_of(finish())] == ["on"]


def test_options_choose_channels(
    tracing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TRACING, "options", Options(channels=frozenset({"A"})))
    assert libpvti.createTraceChannel("A").enabled
    assert not libpvti.createTraceChannel("B").enabled


def test_predefined_channels() -> None:
    channels = libpvti.traceDrivers, libpvti.tracePoplar, libpvti.traceFramework
    assert [each.name for each in channels] == ["Drivers", "Poplar", "Framework"]


def test_a_channel_in_another_process_is_that_process_s_own(tracing: None) -> None:
    channel = libpvti.createTraceChannel("App")
    assert pickle.loads(pickle.dumps(channel)) is channel


def test_nothing_is_kept_after_the_end(finish: Finish) -> None:
    channel = libpvti.createTraceChannel("App")
    libpvti.Tracepoint.event(channel, "before")
    path = libpvti.getCurrentTraceFilename()
    libpvti.closeTrace()
    libpvti.Tracepoint.event(channel, "after")
    assert libpvti.getCurrentTraceFilename() == ""
    assert [label for *_, label in labels_of(read_trace(path))] == ["before"]


def test_long_traces_are_written_as_they_grow(tmp_path: Path) -> None:
    session = Session(Options(directory=tmp_path))
    for number in range(10_001):
        session.event("App", str(number))
    # A full buffer was written; the last point waits for the next time.
    assert len(read_trace(session.path).batch.points) >= 10_000
    session.close()
    assert len(read_trace(session.path).batch.points) == 10_001


def test_a_limit_of_time_ends_the_trace(tmp_path: Path) -> None:
    session = Session(Options(directory=tmp_path, duration_seconds=1e-9))
    session.event("App", "too late")
    session.close()
    assert read_trace(session.path).batch.points == []


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match=r"file.*Choose a directory"):
        Session(Options(directory=tmp_path / "file" / "deep"))


def run_traced(code: str, directory: Path, options: str | None) -> list[Path]:
    environment = {k: v for k, v in os.environ.items() if k != "PVTI_OPTIONS"}
    if options is not None:
        environment["PVTI_OPTIONS"] = options
    command = [sys.executable, "-c", code]
    subprocess.run(command, cwd=directory, env=environment, check=True)
    return sorted(directory.rglob("*.pvti"))


PROGRAM = """
import libpvti
with libpvti.Tracepoint(libpvti.createTraceChannel("App"), "all"):
    pass
"""


def test_the_environment_switches_it_on(tmp_path: Path) -> None:
    (path,) = run_traced(PROGRAM, tmp_path, '{"enable": "true", "directory": "out"}')
    assert path.parent == tmp_path / "out"
    assert [label for *_, label in labels_of(read_trace(path))] == ["all", "all"]


def test_without_it_nothing_is_loaded_or_written(tmp_path: Path) -> None:
    check = "import sys; assert 'popple.report' not in sys.modules"
    assert run_traced(PROGRAM + check, tmp_path, None) == []


FORK = """
import os, libpvti
channel = libpvti.createTraceChannel("App")
libpvti.Tracepoint.event(channel, "parent")
if os.fork() == 0:
    libpvti.Tracepoint.event(channel, "child")
    libpvti.closeTrace()
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_a_trace_of_its_own(tmp_path: Path) -> None:
    files = run_traced(FORK, tmp_path, "{}")
    traces = [read_trace(path) for path in files]
    assert len({trace.process_id for trace in traces}) == 2
    labels = [[point.label for point in trace.batch.points] for trace in traces]
    assert sorted(labels) == [["child"], ["parent"]]
