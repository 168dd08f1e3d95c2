"""Spans: begin and end points of a thread, paired and nested."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from popple.trace.parts import Kind, TracePoint


@dataclass(frozen=True)
class Span:
    """Something that lasted; `parent` is the index of the span it began in.

    An instant is a span of no length.
    """

    label: str
    channel: str
    start_ns: int
    end_ns: int
    parent: int | None

    @property
    def duration_ns(self) -> int:
        """How long it lasted."""
        return self.end_ns - self.start_ns


def spans_of(points: Iterable[TracePoint], last_ns: int) -> tuple[Span, ...]:
    """The spans of one thread's points, in the order in which they began.

    An end belongs to the latest open beginning of the same channel and label. What
    is still open when the trace stops ends at `last_ns`; an end without a beginning
    was begun before the trace and is left out.
    """
    begun: list[tuple[TracePoint, int | None]] = []
    ends: dict[int, int] = {}
    running: list[int] = []
    for point in points:
        if point.kind is Kind.END:
            index = _find_begun(point, begun, running)
            if index is not None:
                ends[index] = point.time_ns
                running.remove(index)
            continue
        begun.append((point, running[-1] if running else None))
        if point.kind is Kind.BEGIN:
            running.append(len(begun) - 1)
        else:
            ends[len(begun) - 1] = point.time_ns
    return tuple(
        Span(point.label, point.channel, point.time_ns, ends.get(index, last_ns), above)
        for index, (point, above) in enumerate(begun)
    )


def _find_begun(
    end: TracePoint, begun: list[tuple[TracePoint, int | None]], running: list[int]
) -> int | None:
    # The innermost one of that name: recursive functions have several open. Not the
    # last opened of any name, since programs may end spans out of order.
    for index in reversed(running):
        point, _ = begun[index]
        if (point.channel, point.label) == (end.channel, end.label):
            return index
    return None
