"""Traces of host programs as processes, threads and events."""

from __future__ import annotations

from pathlib import Path

import pytest

import pva
from popple.trace import Batch, Kind, TracePoint, TraceWriter

US = 1000


def point(time_us: int, kind: Kind, label: str, thread: int = 1) -> TracePoint:
    return TracePoint(time_us * US, thread, kind, "App", label)


@pytest.fixture
def trace(tmp_path: Path) -> pva.Trace:
    path = tmp_path / "a.pvti"
    writer = TraceWriter(path, process_id=42, command="x.py", epoch_ns=5_000_000)
    points = [
        point(1, Kind.BEGIN, "Epoch:0"),
        point(2, Kind.BEGIN, "step"),
        point(2, Kind.BEGIN, "load", thread=2),
        point(6, Kind.END, "step"),
        point(9, Kind.END, "Epoch:0"),
        point(12, Kind.END, "load", thread=2),
    ]
    writer.append(Batch(points, thread_names={1: "main", 2: "loader"}))
    return pva.openTrace(str(path))


def test_processes_and_threads(trace: pva.Trace) -> None:
    (process,) = trace.processes
    assert (process.pid, process.name) == (42, "x.py")
    assert [(t.tid, t.name) for t in process.threads] == [(1, "main"), (2, "loader")]
    assert trace.process(42).thread(2).events[0].label == "load"


def test_events_are_a_tree_in_microseconds(trace: pva.Trace) -> None:
    (epoch,) = trace.processes[0].threads[0].events
    assert (epoch.label, epoch.channel, epoch.duration) == ("Epoch:0", "App", 8)
    assert epoch.timestamp == 5001
    (step,) = epoch.children()
    assert (step.label, step.duration, step.children()) == ("step", 4, [])


def test_unknown_numbers_are_refused(trace: pva.Trace) -> None:
    with pytest.raises(LookupError, match="no process 1; the trace has 42"):
        trace.process(1)
    with pytest.raises(LookupError, match="no thread 3; the trace has 1, 2"):
        trace.processes[0].thread(3)
