"""Records that the vendor's format has no table for: operations, timeline, debug names.

These go into the `popple_*` tables and the files beside `profile.pop`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from popple.errors import ReportError

InfoValue = str | int | float


@dataclass(frozen=True)
class Operation:
    """What one op of the user's program costs in one run.

    All cycles are of the op's own chip and of all its executions in the run;
    `chip` and `stage` are None for an op that runs everywhere. `exchange_cycles` are
    those of all traffic, `link_cycles` and `host_cycles` the parts of it that leave
    the chip. `memory_bytes` are those of results and temporaries together.
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
    rule: str = ""
    memory_bytes: int = 0
    temporary_bytes: int = 0
    plan_json: str = ""
    framework_op: str = ""


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
