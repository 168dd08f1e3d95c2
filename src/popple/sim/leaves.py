"""LeafTime: what one execution of a leaf step costs, on which chips and tiles."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from popple.program import (
    Exchange,
    Execute,
    GlobalExchange,
    Leaf,
    Program,
    StreamCopy,
    Sync,
    SyncKind,
    TileVector,
    chip_maxima,
    chip_totals,
    combine,
)
from popple.sim.cost import ZERO, Cost
from popple.sim.links import link_cycles
from popple.sim.phases import (
    compute_cycles_by_tile,
    compute_flops,
    exchange_cycles_by_tile,
    internal_sync_cycles,
    stream_cycles,
    sync_cycles,
)
from popple.target import Target


@dataclass(frozen=True)
class LeafTime:
    """One execution of a leaf.

    `cycles_by_chip` is 0 on chips that take no part; they may have to wait for
    `cost.cycles`, the time of the slowest chip. `cycles_by_tile` leaves syncs out. A
    bare Sync names no chips: the chips that run the part of the program around it wait
    for it (`timing`).
    """

    cost: Cost
    cycles_by_chip: tuple[int, ...]
    cycles_by_tile: TileVector


class LeafTimer:
    """Times the leaves of one program; leaves that do the same are timed once."""

    def __init__(self, program: Program, target: Target) -> None:
        self._program = program
        self._target = target
        self._known: dict[Hashable, LeafTime] = {}
        # By identity of the vertices, which steps of equal layers share: looking into
        # them is slow. The program keeps them alive.
        self._executed: dict[int, LeafTime] = {}

    def time(self, leaf: Leaf) -> LeafTime:
        """The time of one leaf on the target."""
        if not isinstance(leaf, Execute):
            return self._find(leaf)
        key = id(leaf.compute_set.vertices)
        if (known := self._executed.get(key)) is None:
            known = self._executed[key] = self._find(leaf)
        return known

    def _find(self, leaf: Leaf) -> LeafTime:
        key = _what_counts(leaf)
        if (known := self._known.get(key)) is None:
            known = self._known[key] = _time_leaf(leaf, self._program, self._target)
        return known


def _what_counts(leaf: Leaf) -> Hashable:
    """The fields of a leaf that decide its time, as a key; names are left out."""
    if isinstance(leaf, Execute):
        return leaf.compute_set.vertices
    if isinstance(leaf, Exchange):
        # Layers of a model repeat the same vectors under other names: a model of 24
        # equal layers is timed as one.
        traffic = (leaf.sent_by_tile, leaf.received_by_tile, leaf.messages_by_tile)
        return (*traffic, leaf.is_shared)
    return leaf


def _time_leaf(leaf: Leaf, program: Program, target: Target) -> LeafTime:
    if isinstance(leaf, Execute):
        return _time_execute(leaf, program, target)
    if isinstance(leaf, Exchange):
        return _time_exchange(leaf, program, target)
    if isinstance(leaf, GlobalExchange):
        return _time_global_exchange(leaf, program, target)
    if isinstance(leaf, StreamCopy):
        return _time_stream_copy(leaf, program, target)
    waiting = sync_cycles(leaf.kind, target) if isinstance(leaf, Sync) else 0
    cost = Cost(sync_cycles=waiting) if waiting else ZERO
    nothing = TileVector.zeros(program.num_tiles)
    return LeafTime(cost, (0,) * program.num_chips, nothing)


def _time_execute(leaf: Execute, program: Program, target: Target) -> LeafTime:
    by_tile = compute_cycles_by_tile(leaf.compute_set, target.chip.num_workers)
    # A compute set without vertices has no vector from which to take the number of
    # tiles.
    if not by_tile.runs:
        by_tile = TileVector.zeros(program.num_tiles)
    by_chip = _maxima(by_tile, program)
    flops = compute_flops(leaf.compute_set)
    return LeafTime(Cost(compute_cycles=max(by_chip), flops=flops), by_chip, by_tile)


def _time_exchange(leaf: Exchange, program: Program, target: Target) -> LeafTime:
    by_tile = exchange_cycles_by_tile(leaf, target.chip)
    by_chip = _maxima(by_tile, program)
    # Without bytes there is no phase, and so no sync in front of it.
    longest = max(by_chip)
    if not longest:
        return LeafTime(ZERO, by_chip, by_tile)
    sync = internal_sync_cycles(target.chip)
    cost = Cost(
        exchange_cycles=longest,
        sync_cycles=sync,
        exchange_bytes=leaf.received_by_tile.total,
    )
    return LeafTime(cost, _plus_where_busy(by_chip, sync), by_tile)


def _time_global_exchange(
    leaf: GlobalExchange, program: Program, target: Target
) -> LeafTime:
    cycles = link_cycles(leaf, target)
    sync = sync_cycles(SyncKind.EXTERNAL, target) if cycles else 0
    num_bytes = sum(num_bytes for _, _, num_bytes in leaf.flows)
    cost = Cost(link_cycles=cycles, sync_cycles=sync, link_bytes=num_bytes)
    # The sync in front joins both ends of every flow, so partners are busy for all of
    # it, however little they send.
    partners = {chip for flow in leaf.flows for chip in flow[:2]}
    by_chip = tuple(
        cost.cycles if chip in partners else 0 for chip in range(program.num_chips)
    )
    traffic = [leaf.sent_by_tile, leaf.received_by_tile]
    by_tile = combine(lambda values: cycles if any(values) else 0, traffic)
    return LeafTime(cost, by_chip, by_tile)


def _time_stream_copy(leaf: StreamCopy, program: Program, target: Target) -> LeafTime:
    totals = chip_totals(leaf.bytes_by_tile, program.num_chips, program.tiles_per_chip)
    by_chip = tuple(sum(stream_cycles(leaf, each, target)) for each in totals)
    cost = Cost(host_cycles=max(by_chip), host_bytes=sum(totals))
    # All tiles that take part wait in the same sync until the last one has its data.
    by_tile = leaf.bytes_by_tile.map(lambda value: cost.host_cycles if value else 0)
    return LeafTime(cost, by_chip, by_tile)


def _maxima(vector: TileVector, program: Program) -> tuple[int, ...]:
    return chip_maxima(vector, program.num_chips, program.tiles_per_chip)


def _plus_where_busy(by_chip: Sequence[int], extra: int) -> tuple[int, ...]:
    return tuple(cycles + extra if cycles else 0 for cycles in by_chip)
