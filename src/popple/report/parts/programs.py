"""Program tree of a report: nodes with a type name, children and a payload.

A `ProgramNode` has a type name, children by id and, for some types, a payload:

    OnTileExecute -> ExecutePayload       DoExchange     -> ExchangePayload
    GlobalExchange -> ChipExchangePayload StreamCopyMid  -> StreamCopyPayload
    Repeat -> RepeatPayload               Call           -> CallPayload
    Sync -> SyncPayload                   Sans, SyncAns  -> TilesPayload
    CodeCopy -> CodeCopyPayload
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from popple.errors import ReportError
from popple.quick import quick
from popple.report.codec import Runs, length_of


@quick
@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes every tile of the machine sends and receives, and the cycles it takes.

    `cycles_by_tile` holds one vector a chip, over the tiles of that chip.
    """

    received_bytes_by_tile: Runs
    sent_bytes_by_tile: Runs
    cycles_by_tile: tuple[Runs, ...] = ()

    def __post_init__(self) -> None:
        # Sums by chip walk both vectors together.
        received = length_of(self.received_bytes_by_tile)
        sent = length_of(self.sent_bytes_by_tile)
        if received != sent:
            raise ReportError(f"{received} tiles receive but {sent} tiles send.")


@dataclass(frozen=True)
class Endpoints:
    """What an exchange reads and writes: as text, and as `ExchangeRegion` ids."""

    source_variables: str | None = None
    destination_variables: str | None = None
    source_regions_id: int | None = None
    destination_regions_id: int | None = None


@dataclass(frozen=True)
class ExchangeRegion:
    """The bytes of one lowered variable that one end of an exchange touches."""

    id: int
    variable_id: int
    regions: str | None


@dataclass(frozen=True)
class HostExchange:
    """One stream or remote buffer served by a stream copy."""

    stream: str
    regions: str = ""
    is_remote_buffer: bool = False
    regions_id: int | None = None


@quick
@dataclass(frozen=True, slots=True)
class ExecutePayload:
    """Runs a compute set."""

    compute_set_id: int


@quick
@dataclass(frozen=True, slots=True)
class ExchangePayload:
    """Moves data between the tiles of each chip."""

    traffic: Traffic
    code_bytes_by_tile: Runs
    endpoints: Endpoints = field(default_factory=Endpoints)


@quick
@dataclass(frozen=True, slots=True)
class ChipExchangePayload:
    """Moves data between chips."""

    traffic: Traffic
    sync_type: str
    endpoints: Endpoints = field(default_factory=Endpoints)


@dataclass(frozen=True)
class StreamCopyPayload:
    """Moves data between chips and host."""

    traffic: Traffic
    from_host: tuple[HostExchange, ...] = ()
    to_host: tuple[HostExchange, ...] = ()


@dataclass(frozen=True)
class CodeCopyPayload:
    """Copies code to tiles."""

    cycles_by_tile: tuple[Runs, ...] = ()
    destination_regions_id: int | None = None


@dataclass(frozen=True)
class RepeatPayload:
    """Repeats its child; None where the count is known only at run time."""

    count: int | None


@quick
@dataclass(frozen=True, slots=True)
class CallPayload:
    """Calls a function of `function_programs`."""

    function_id: int


@dataclass(frozen=True)
class SyncPayload:
    """Waits; the type is `Internal`, `External` or another word of the format."""

    sync_type: str


@dataclass(frozen=True)
class TilesPayload:
    """Names the tiles that announce, or wait for, a sync."""

    tiles: tuple[int, ...]


Payload: TypeAlias = (
    ExecutePayload
    | ExchangePayload
    | ChipExchangePayload
    | StreamCopyPayload
    | CodeCopyPayload
    | RepeatPayload
    | CallPayload
    | SyncPayload
    | TilesPayload
)


@quick
@dataclass(frozen=True, slots=True)
class ProgramNode:
    """One node of the program tree."""

    id: int
    type_name: str
    name: str | None = None
    children: tuple[int, ...] = ()
    payload: Payload | None = None
    control_code_bytes_by_tile: Runs | None = None
    debug_id: int | None = None
    compilation_step_id: int | None = None


@dataclass(frozen=True)
class EntryProgram:
    """A root of the tree: a control program or a function that is called."""

    id: int
    program_id: int
    compilation_step_id: int | None = None


@quick
@dataclass(frozen=True, slots=True)
class LivenessStep:
    """One visit of a program in depth-first order: the clock of liveness.

    `name` is what people read; a genuine file has none and shows the program's.
    """

    id: int
    program_id: int
    parent_id: int | None = None
    name: str | None = None
