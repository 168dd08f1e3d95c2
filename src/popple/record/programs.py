"""Program tree of a report: nodes, compute sets, vertex types, entry programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from popple.program import (
    Call,
    Codelet,
    ComputeSet,
    Direction,
    Exchange,
    Execute,
    GlobalExchange,
    If,
    Repeat,
    RepeatWhile,
    Step,
    StreamCopy,
    Switch,
    Sync,
    SyncKind,
    TileVector,
    WriteUndef,
    add_all,
    child_ids,
    chip_parts,
    label_of,
    root_ids,
)
from popple.report import (
    CallPayload,
    ChipExchangePayload,
    EntryProgram,
    ExchangePayload,
    ExecutePayload,
    HostExchange,
    Payload,
    ProgramNode,
    RepeatPayload,
    StreamCopyPayload,
    SyncPayload,
    Traffic,
    VertexInstances,
    VertexType,
)
from popple.report import ComputeSet as ReportComputeSet
from popple.sim import LeafTime, Simulation
from popple.sim.reuse import exchange_instructions
from popple.units import ceil_div

_PartsByChip: TypeAlias = tuple[tuple[tuple[int, int], ...], ...]

_WORD_BYTES = 4
_STREAM_TURN_CYCLES = 18
"""What a tile's turn at the host takes beside its words, in estimates of a genuine Bow
profile: 25 cycles for one word, 14,580 for 276 tiles of 35, 211,179 for 1439 of 134."""

STREAM_PARTS = ("StreamCopyBegin", "StreamCopyMid", "StreamCopyEnd")

_TYPE_NAMES: Mapping[type, str] = {
    Execute: "OnTileExecute",
    Exchange: "DoExchange",
    GlobalExchange: "GlobalExchange",
    Repeat: "Repeat",
    RepeatWhile: "RepeatWhile",
    If: "If",
    Switch: "Switch",
    Call: "Call",
    Sync: "Sync",
    WriteUndef: "WriteUndef",
}


@dataclass
class ProgramTree:
    """Programs, compute sets and vertex types as they are recorded.

    A program's id is its step number; the three parts of a stream copy follow behind
    all step numbers, at `stream_parts`.
    """

    programs: list[ProgramNode] = field(default_factory=list[ProgramNode])
    compute_sets: list[ReportComputeSet] = field(default_factory=list[ReportComputeSet])
    vertex_types: list[VertexType] = field(default_factory=list[VertexType])
    control: list[EntryProgram] = field(default_factory=list[EntryProgram])
    functions: list[EntryProgram] = field(default_factory=list[EntryProgram])
    stream_parts: dict[int, tuple[int, int, int]] = field(
        default_factory=dict[int, tuple[int, int, int]]
    )


class TreeRecorder:
    """Walks the numbered steps of a simulation and fills a ProgramTree."""

    def __init__(
        self, simulation: Simulation, debug_ids: Mapping[str, int], instruction: int
    ) -> None:
        self._simulation = simulation
        self._program = simulation.program
        self._debug_ids = debug_ids
        self._instruction_bytes = instruction
        self._tree = ProgramTree()
        # By identity: the program keeps its compute sets alive, and comparing their
        # vectors would be slow.
        self._compute_set_ids: dict[int, int] = {}
        self._codelets: dict[Codelet, int] = {}
        self._counts: dict[int, list[TileVector]] = {}
        # Leaves that do the same share their time, and so its parts by chip and what
        # they exchange.
        self._parts: dict[int, _PartsByChip] = {}
        self._exchanges: dict[tuple[int, bool], ExchangePayload] = {}
        # Compute sets of equal layers share their vertices.
        self._instances_of: dict[int, tuple[tuple[VertexInstances, ...], int]] = {}
        self._function_ids = {name: i for i, name in enumerate(self._program.functions)}

    def record(self) -> ProgramTree:
        """The whole tree."""
        steps = self._simulation.steps
        extra: list[ProgramNode] = []
        for row in steps:
            self._tree.programs.append(self._program_of(row.id, row.step, extra))
        self._tree.programs += extra
        self._tree.vertex_types += self._vertex_types()
        for name, root in root_ids(steps).items():
            if name in self._function_ids:
                entry = EntryProgram(self._function_ids[name], root)
                self._tree.functions.append(entry)
            else:
                self._tree.control.append(EntryProgram(0, root))
        return self._tree

    def _program_of(
        self, step_id: int, step: Step, extra: list[ProgramNode]
    ) -> ProgramNode:
        children = tuple(child_ids(self._simulation.steps, step_id))
        debug_id = self._debug_ids.get(getattr(step, "op", ""))
        if isinstance(step, StreamCopy):
            # A stream copy is one step here and three programs in the format. Their ids
            # come behind all step numbers, which thereby stay program ids.
            first = len(self._simulation.steps) + len(extra)
            children = (first, first + 1, first + 2)
            self._tree.stream_parts[step_id] = children
            extra += self._stream_programs(step_id, step, children)
        return ProgramNode(
            id=step_id,
            type_name=_TYPE_NAMES.get(type(step), "Sequence"),
            name=label_of(step),
            children=children,
            payload=self._payload(step_id, step),
            debug_id=debug_id,
        )

    def _stream_programs(
        self, step_id: int, step: StreamCopy, ids: tuple[int, int, int]
    ) -> list[ProgramNode]:
        debug_id = self._debug_ids.get(step.op)
        stream = (HostExchange(step.name, is_remote_buffer=step.is_remote_buffer),)
        nothing = TileVector.zeros(self._program.num_tiles)
        is_input = step.direction is Direction.FROM_HOST
        payload = StreamCopyPayload(
            Traffic(
                (step.bytes_by_tile if is_input else nothing).runs,
                (nothing if is_input else step.bytes_by_tile).runs,
                self._expected_stream_cycles(step),
            ),
            from_host=stream if is_input else (),
            to_host=() if is_input else stream,
        )
        return [
            ProgramNode(
                number,
                kind,
                name=step.name,
                payload=payload if kind == "StreamCopyMid" else None,
                debug_id=debug_id,
            )
            for number, kind in zip(ids, STREAM_PARTS, strict=True)
        ]

    def _expected_stream_cycles(self, step: StreamCopy) -> _PartsByChip:
        """What is expected of a stream when it is compiled: the host not waited for.

        All tiles of a chip take turns at the way to the host, a word a cycle.
        """
        program = self._program
        parts: list[tuple[tuple[int, int], ...]] = []
        for chip in range(program.num_chips):
            first = chip * program.tiles_per_chip
            part = step.bytes_by_tile.part(first, first + program.tiles_per_chip)
            words = ceil_div(part.total, _WORD_BYTES)
            cycles = words + part.num_nonzero * _STREAM_TURN_CYCLES
            parts.append(part.presence().scaled(cycles).runs)
        return tuple(parts)

    def _payload(self, step_id: int, step: Step) -> Payload | None:
        if isinstance(step, Execute):
            return ExecutePayload(self._compute_set(step_id, step))
        if isinstance(step, Exchange):
            return self._exchange(step_id, step)
        if isinstance(step, GlobalExchange):
            # Every exchange between chips begins with an external sync.
            traffic = self._traffic(step_id, step.received_by_tile, step.sent_by_tile)
            return ChipExchangePayload(traffic, SyncKind.EXTERNAL.value)
        if isinstance(step, Repeat):
            return RepeatPayload(step.count)
        if isinstance(step, Call):
            return CallPayload(self._function_ids[step.function])
        return SyncPayload(step.kind.value) if isinstance(step, Sync) else None

    def _exchange(self, step_id: int, step: Exchange) -> ExchangePayload:
        """What an exchange moves, and its code: that of outlined ops is elsewhere."""
        is_shared = step.op in self._program.outlined
        key = id(self._leaf_time(step_id)), is_shared
        if (known := self._exchanges.get(key)) is None:
            # Code that an exchange reuses from an earlier one (`sim/reuse.py`) is
            # listed with both: the format describes the exchange, memory by category
            # counts it once.
            size = 0 if is_shared else self._instruction_bytes
            code = exchange_instructions(step).scaled(size)
            traffic = self._traffic(step_id, step.received_by_tile, step.sent_by_tile)
            known = self._exchanges[key] = ExchangePayload(traffic, code.runs)
        return known

    def _traffic(self, step_id: int, received: TileVector, sent: TileVector) -> Traffic:
        return Traffic(received.runs, sent.runs, self._cycles_by_chip(step_id))

    def _cycles_by_chip(self, step_id: int) -> _PartsByChip:
        program, leaf = self._program, self._leaf_time(step_id)
        if (known := self._parts.get(id(leaf))) is None:
            known = self._parts[id(leaf)] = chip_parts(
                leaf.cycles_by_tile, program.num_chips, program.tiles_per_chip
            )
        return known

    def _leaf_time(self, step_id: int) -> LeafTime:
        leaf = self._simulation.timing.leaf_times[step_id]
        assert leaf is not None
        return leaf

    def _compute_set(self, step_id: int, step: Execute) -> int:
        compute_set = step.compute_set
        known = self._compute_set_ids.get(id(compute_set))
        if known is not None:
            return known
        number = len(self._tree.compute_sets)
        self._compute_set_ids[id(compute_set)] = number
        cycles = self._cycles_by_chip(step_id)
        instances, num_edges = self._instances(compute_set)
        self._tree.compute_sets.append(
            ReportComputeSet(
                id=number,
                name=compute_set.name,
                instances=instances,
                num_edges=num_edges,
                debug_id=self._debug_ids.get(step.op),
                # Vertices take what is expected of them: nothing holds them up.
                cycles_by_tile=cycles,
                estimated_cycles_by_tile=cycles,
            )
        )
        return number

    def _instances(
        self, compute_set: ComputeSet
    ) -> tuple[tuple[VertexInstances, ...], int]:
        """The vertices of a compute set by type, and the number of their edges."""
        key = id(compute_set.vertices)
        if (known := self._instances_of.get(key)) is None:
            found = self._find_instances(compute_set)
            known = self._instances_of[key] = found, _num_edges(compute_set)
        return known

    def _find_instances(self, compute_set: ComputeSet) -> tuple[VertexInstances, ...]:
        counts: dict[int, TileVector] = {}
        for group in compute_set.vertices:
            number = self._codelets.setdefault(group.codelet, len(self._codelets))
            here = counts.get(number)
            counts[number] = (
                group.count_by_tile if here is None else here + group.count_by_tile
            )
        for number, count in counts.items():
            self._counts.setdefault(number, []).append(count)
        return tuple(VertexInstances(n, total.runs) for n, total in counts.items())

    def _vertex_types(self) -> list[VertexType]:
        """Every codelet, with its code on the tiles that have vertices of it."""
        copies = int(self._program.has_vertex_code)
        return [
            VertexType(
                number,
                codelet.name,
                codelet.state_bytes,
                "asm",
                add_all(self._counts[number], self._program.num_tiles)
                .presence()
                .scaled(codelet.code_bytes * copies)
                .runs,
            )
            for codelet, number in self._codelets.items()
        ]


def _num_edges(compute_set: ComputeSet) -> int:
    return sum(g.num_edges * g.count_by_tile.total for g in compute_set.vertices)
