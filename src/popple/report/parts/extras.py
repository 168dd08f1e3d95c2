"""Records that the vendor's format has no table for: operations, timeline, debug names.

These go into the `popple_*` tables and the files beside `profile.pop`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from popple.errors import ReportError
from popple.quick import quick

InfoValue = str | int | float


@quick
@dataclass(frozen=True, slots=True)
class Operation:
    """What one op of the user's program costs in one run.

    `cycles` are those from the beginning to the end of its steps, in all executions of
    the run; `chip` and `stage` are None for an op that runs everywhere. What it takes
    of the time of all chips is in exactly one class: compute, exchange within a chip,
    links between chips, host, sync; those of `bound_by` are the most. That is less than
    `cycles` where it runs beside longer steps, and more where several chips take part,
    so that all operations together take the time that chips are busy. `limited_by` says
    what kept the planner from a faster plan, if anything did; `remark` what the op is
    there for, where its kind does not say it. `memory_bytes` are those of results and
    temporaries together.
    """

    id: int
    name: str
    kind: str
    cycles: int
    family: str = ""
    phase: str = ""
    chip: int | None = None
    stage: int | None = None
    module: str = ""
    source_line: str = ""
    compute_cycles: int = 0
    exchange_cycles: int = 0
    link_cycles: int = 0
    host_cycles: int = 0
    sync_cycles: int = 0
    flops: int = 0
    num_executions: int = 1
    num_vertices: int = 0
    bound_by: str = ""
    limited_by: str = ""
    remark: str = ""
    rule: str = ""
    memory_bytes: int = 0
    temporary_bytes: int = 0
    plan_json: str = ""
    framework_op: str = ""

    @property
    def cycles_by_class(self) -> dict[str, int]:
        """Cycles of each class, of all chips."""
        return {
            "compute": self.compute_cycles,
            "exchange": self.exchange_cycles,
            "links": self.link_cycles,
            "host": self.host_cycles,
            "sync": self.sync_cycles,
        }


@dataclass(frozen=True)
class ChipTime:
    """Where the cycles of a run go on one chip; the classes add up to the run."""

    chip: int
    compute_cycles: int = 0
    exchange_cycles: int = 0
    link_cycles: int = 0
    host_cycles: int = 0
    sync_cycles: int = 0
    bubble_cycles: int = 0

    @property
    def cycles_by_class(self) -> dict[str, int]:
        """Cycles of each class; bubbles are waits for other chips."""
        return {
            "compute": self.compute_cycles,
            "exchange": self.exchange_cycles,
            "links": self.link_cycles,
            "host": self.host_cycles,
            "sync": self.sync_cycles,
            "bubbles": self.bubble_cycles,
        }


@quick
@dataclass(frozen=True, slots=True)
class RoleBytes:
    """Bytes of one role on the fullest tile of a chip, when it is fullest."""

    chip: int
    tile: int
    role: str
    num_bytes: int


def add_times(times: Iterable[ChipTime]) -> dict[str, int]:
    """Cycles of all chips by class; empty where nothing is known."""
    sums: dict[str, int] = {}
    for each in times:
        for name, cycles in each.cycles_by_class.items():
            sums[name] = sums.get(name, 0) + cycles
    return sums


def bound_by(cycles_by_class: Mapping[str, int]) -> str:
    """The class with most of the cycles; the one meaning of the words everywhere."""
    if not any(cycles_by_class.values()):
        return ""
    return max(cycles_by_class, key=lambda name: cycles_by_class[name])


@quick
@dataclass(frozen=True, slots=True)
class TimelineSlice:
    """Something a chip does from one cycle to another."""

    chip: int
    start_cycles: int
    end_cycles: int
    label: str
    phase: str = ""
    stage: int | None = None
    micro_batch: int | None = None

    def __post_init__(self) -> None:
        if self.end_cycles < self.start_cycles:
            raise ReportError(f"timeline slice {self.label!r} ends before it begins.")


@quick
@dataclass(frozen=True, slots=True)
class DebugContext:
    """A name in the user's program; debug ids of other records refer to it."""

    id: int
    name: str
    parent_id: int | None = None
    module: str = ""
    source_line: str = ""


@dataclass(frozen=True)
class Framework:
    """The framework the program was written in, with its options."""

    name: str
    version: str = ""
    options: Mapping[str, InfoValue] = field(default_factory=dict[str, InfoValue])
