"""Records of a trace: points, series, heatmaps. Times are ns of one monotonic clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from popple.errors import ReportError


class Kind(IntEnum):
    """What a trace point says: something begins, ends, or happens at once."""

    BEGIN = 0
    END = 1
    INSTANT = 2


class TracePoint(NamedTuple):
    """One moment in one thread. A tuple: programs make millions of them."""

    time_ns: int
    thread_id: int
    kind: Kind
    channel: str
    label: str


@dataclass(frozen=True)
class Series:
    """A line of figures, drawn in the graph of this name together with others."""

    graph: str
    unit: str
    name: str


class Sample(NamedTuple):
    """One figure of a series."""

    series: Series
    time_ns: int
    value: float


@dataclass(frozen=True)
class Heatmap:
    """A distribution over time: bin `i` counts values from edge `i` to edge `i + 1`."""

    name: str
    unit: str
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        pairs = zip(self.edges, self.edges[1:], strict=False)
        if len(self.edges) < 2 or any(low >= high for low, high in pairs):
            raise ReportError(
                f"the edges of heatmap {self.name!r} are no ascending numbers.",
                remedy="Give two or more edges, each larger than the one before.",
            )

    @property
    def num_bins(self) -> int:
        """How many bins the edges enclose."""
        return len(self.edges) - 1


class Histogram(NamedTuple):
    """The counts of one moment, and how many values no bin holds."""

    heatmap: Heatmap
    time_ns: int
    counts: tuple[int, ...]
    num_outside: int = 0


@dataclass(frozen=True)
class Batch:
    """What is written to a trace at one time."""

    points: Sequence[TracePoint] = ()
    samples: Sequence[Sample] = ()
    histograms: Sequence[Histogram] = ()
    thread_names: Mapping[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True)
class Trace:
    """A whole trace: one process; `epoch_ns` plus a time is the time of day."""

    process_id: int
    command: str
    epoch_ns: int
    batch: Batch
