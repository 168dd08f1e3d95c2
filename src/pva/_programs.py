"""The tree of programs the machine runs, and visitors of it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import cached_property
from typing import Any

from popple import report as rp
from pva._compute import ComputeSet, ComputeSetIndex, by_tile
from pva._variables import LoweredVariable, VariableIndex

__all__ = ["Program", "ProgramIndex", "ProgramVisitor"]


class ProgramType(Enum):
    """What a program does, by the name its file gives it; the ids are the format's."""

    Unknown = 0
    Sequence = 1
    OnTileExecute = 2
    RepeatWhile = 4
    OnEveryTileSwitch = 9
    DoExchange = 11
    StreamCopyBegin = 17
    StreamCopyMid = 18
    StreamCopyEnd = 19
    WriteUndef = 20
    SetLocalConsensusFromVar = 23
    Sync = 25
    Sans = 27
    SyncAns = 28
    Call = 101
    Repeat = 102
    GlobalExchange = 103
    CodeCopy = 104
    If = 105
    Switch = 106


class ProgramVisitor:
    """Override `visitOnTileExecute` and its like, one for each type of program.

    `program.accept(visitor)` calls the one that belongs to the program's type.
    """

    def visitUnknown(self, program: Program) -> None:
        """A program of a type that has no method here."""

    def visitSequence(self, program: Program) -> None: ...
    def visitOnTileExecute(self, program: Program) -> None: ...
    def visitRepeatWhile(self, program: Program) -> None: ...
    def visitOnEveryTileSwitch(self, program: Program) -> None: ...
    def visitDoExchange(self, program: Program) -> None: ...
    def visitStreamCopyBegin(self, program: Program) -> None: ...
    def visitStreamCopyMid(self, program: Program) -> None: ...
    def visitStreamCopyEnd(self, program: Program) -> None: ...
    def visitWriteUndef(self, program: Program) -> None: ...
    def visitSetLocalConsensusFromVar(self, program: Program) -> None: ...
    def visitSync(self, program: Program) -> None: ...
    def visitSans(self, program: Program) -> None: ...
    def visitSyncAns(self, program: Program) -> None: ...
    def visitCall(self, program: Program) -> None: ...
    def visitRepeat(self, program: Program) -> None: ...
    def visitGlobalExchange(self, program: Program) -> None: ...
    def visitCodeCopy(self, program: Program) -> None: ...
    def visitIf(self, program: Program) -> None: ...
    def visitSwitch(self, program: Program) -> None: ...


class Program:
    """A node of the program tree.

    Programs that run vertices have `computeset`, those that move data
    `estimatedCyclesByTile`, exchanges `codeBytesByTile`.
    """

    Type = ProgramType

    def __init__(self, record: rp.ProgramNode, index: ProgramIndex) -> None:
        self._record = record
        self._index = index
        self._id = record.id
        known = ProgramType.__members__
        self.type = known.get(record.type_name, ProgramType.Unknown)

    @property
    def name(self) -> str:
        """The program's own name, or that of what it runs or waits for."""
        payload = self._record.payload
        if isinstance(payload, rp.ExecutePayload):
            return self._index.compute.records[payload.compute_set_id].name
        if isinstance(payload, rp.SyncPayload):
            return payload.sync_type
        return self._record.name or ""

    @property
    def children(self) -> list[Program]:
        """The programs it is made of."""
        return [self._index.programs[number] for number in self._record.children]

    @property
    def controlCodeByTile(self) -> list[int]:
        """Bytes of control code on every tile."""
        code = self._record.control_code_bytes_by_tile
        return by_tile((code,)) if code else [0] * self._index.num_tiles

    @property
    def vars(self) -> list[LoweredVariable]:
        """The pieces of memory it reads and writes, if the report lists them."""
        lowered = self._index.variables.lowered
        numbers = dict.fromkeys(self._index.variable_ids(self._record))
        return [lowered[number] for number in numbers if number in lowered]

    def accept(self, visitor: ProgramVisitor) -> None:
        """Call the visitor's method for this type of program."""
        getattr(visitor, f"visit{self.type.name}")(self)

    def __repr__(self) -> str:
        return f"<pva.Program {self.type.name} {self.name!r}>"


class OnTileExecute(Program):
    """Runs a compute set."""

    @property
    def computeset(self) -> ComputeSet:
        """What it runs."""
        payload: Any = self._record.payload
        return self._index.compute.compute_sets[payload.compute_set_id]


class Mover(Program):
    """Moves data between tiles, chips, or chips and host."""

    @property
    def estimatedCyclesByTile(self) -> list[int]:
        """What the compiler expected; empty where the report does not tell."""
        payload: Any = self._record.payload
        return by_tile(payload.traffic.cycles_by_tile)


class DoExchange(Mover):
    """Moves data between the tiles of each chip."""

    @property
    def codeBytesByTile(self) -> list[int]:
        """Bytes of exchange code on every tile."""
        payload: Any = self._record.payload
        return by_tile((payload.code_bytes_by_tile,))


_VIEWS: dict[str, type[Program]] = {
    "OnTileExecute": OnTileExecute,
    "DoExchange": DoExchange,
    "GlobalExchange": Mover,
    "StreamCopyMid": Mover,
}


class ProgramIndex:
    """All programs of a report; there is one view a program."""

    def __init__(
        self, report: rp.Report, compute: ComputeSetIndex, variables: VariableIndex
    ) -> None:
        self._report = report
        self.compute = compute
        self.variables = variables

    @property
    def num_tiles(self) -> int:
        """Tiles of the machine."""
        return self._report.target.num_tiles

    @cached_property
    def programs(self) -> dict[int, Program]:
        """Programs by id."""
        return {
            record.id: _VIEWS.get(record.type_name, Program)(record, self)
            for record in self._report.programs
        }

    def waiting(self, sync_type: str) -> Program:
        """A sync that is executed but stands nowhere in the tree."""
        is_type = sync_type in ProgramType.__members__
        kind = sync_type if is_type else "Sync"
        record = rp.ProgramNode(-1, kind, payload=rp.SyncPayload(sync_type))
        return Program(record, self)

    def variable_ids(self, record: rp.ProgramNode) -> Iterable[int]:
        """The lowered variables a program touches."""
        payload = record.payload
        if isinstance(payload, rp.ExecutePayload):
            return self.compute.records[payload.compute_set_id].variable_ids
        if isinstance(payload, rp.ExchangePayload | rp.ChipExchangePayload):
            ends = payload.endpoints
            groups = (ends.source_regions_id, ends.destination_regions_id)
            return [n for group in groups for n in self._regions.get(group, ())]
        if isinstance(payload, rp.StreamCopyPayload):
            streams = (*payload.from_host, *payload.to_host)
            groups = [each.regions_id for each in streams]
            return [n for group in groups for n in self._regions.get(group, ())]
        return ()

    @cached_property
    def _regions(self) -> dict[int | None, list[int]]:
        """Lowered variables by the group of regions an exchange names."""
        groups: dict[int | None, list[int]] = {}
        for region in self._report.exchange_regions:
            groups.setdefault(region.id, []).append(region.variable_id)
        return groups
