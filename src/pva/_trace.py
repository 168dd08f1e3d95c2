"""`openTrace`: the trace of a host program, as processes, threads and events."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from popple.trace import Span, read_trace, spans_of
from popple.trace import Trace as TraceRecord

__all__ = ["Event", "Process", "Thread", "Trace", "openTrace"]

_NS_PER_US = 1000

T = TypeVar("T")


class Event:
    """Something a thread did; times are whole microseconds.

    An instant is an event of no duration.
    """

    def __init__(self, thread: Thread, index: int) -> None:
        span = thread.spans[index]
        self._thread = thread
        self._index = index
        self.label = span.label
        self.channel = span.channel
        self.timestamp = (thread.epoch_ns + span.start_ns) // _NS_PER_US
        self.duration = span.duration_ns // _NS_PER_US

    def children(self) -> list[Event]:
        """What was done inside it."""
        return self._thread.events_in(self._index)

    def __repr__(self) -> str:
        return f"<pva.Event {self.label!r}, {self.duration} us>"


class Thread:
    """One thread of a process."""

    def __init__(
        self, tid: int, name: str, spans: Sequence[Span], epoch_ns: int
    ) -> None:
        self.tid = tid
        self.name = name
        self.spans = spans
        self.epoch_ns = epoch_ns

    @property
    def events(self) -> list[Event]:
        """What the thread did, outermost events only."""
        return self.events_in(None)

    def events_in(self, parent: int | None) -> list[Event]:
        """The events that began directly inside one, or inside none."""
        return [Event(self, index) for index in self._children.get(parent, ())]

    @cached_property
    def _children(self) -> Mapping[int | None, Sequence[int]]:
        found: dict[int | None, list[int]] = {}
        for index, span in enumerate(self.spans):
            found.setdefault(span.parent, []).append(index)
        return found


class Process:
    """A traced process."""

    def __init__(self, record: TraceRecord) -> None:
        self.pid = record.process_id
        self.name = record.command
        points = record.batch.points
        last_ns = max((point.time_ns for point in points), default=0)
        numbers = dict.fromkeys(point.thread_id for point in points)
        self.threads = [
            Thread(
                number,
                record.batch.thread_names.get(number, ""),
                spans_of((p for p in points if p.thread_id == number), last_ns),
                record.epoch_ns,
            )
            for number in numbers
        ]

    def thread(self, tid: int) -> Thread:
        """The thread of this number."""
        return _find(tid, {each.tid: each for each in self.threads}, "thread")


class Trace:
    """An open trace."""

    def __init__(self, record: TraceRecord) -> None:
        self.processes = [Process(record)]

    def process(self, pid: int) -> Process:
        """The process of this number."""
        return _find(pid, {each.pid: each for each in self.processes}, "process")


def openTrace(filename: str | os.PathLike[str]) -> Trace:
    """Read a `.pvti` file."""
    return Trace(read_trace(filename))


def _find(number: int, known: Mapping[int, T], what: str) -> T:
    if number not in known:
        there = ", ".join(map(str, known))
        raise LookupError(f"There is no {what} {number}; the trace has {there}.")
    return known[number]
