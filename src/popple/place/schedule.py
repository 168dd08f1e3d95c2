"""Schedule: an order of ops with which less is live at once.

The frameworks' compilers order ops by what they free and make (graphcore/popart,
willow/src/scheduler.cpp, minimises live bytes under the same constraints). Here ops
move twice, each to one place that their neighbours in the data flow give:

    hoisted  to right behind what it needs, if it frees at least as much as it makes:
             a gradient is accumulated as soon as it exists
    sunk     to right before its first use, if it makes at least as much as it frees:
             casts, masks, loads and restored activations wait until they are read

A part of the graph keeps its old order unless the new one lowers the peak of a chip
and raises none. Parts are what runs as one: a pipeline stage, or all micro-batch work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from popple.graph import Graph, Op, Phase, Role, Strategy, find_dependencies

_TRANSIENT = frozenset({Role.INPUT, Role.ACTIVATION})

_Order = list[int]
"""Positions of ops in the order in which they run"""
_Needs = Sequence[tuple[int, ...]]
"""For every op the positions of those that must run before it"""


@dataclass(frozen=True)
class Schedule:
    """Reorders the ops of every part; the update keeps its order.

    Runs last, when all copies, rings, loads and sums are in the graph.
    """

    def apply(self, graph: Graph) -> Graph:
        """The graph with its ops reordered where that lowers a peak.

        Functions are ordered for themselves: what lives around them is the same all
        the time they run.
        """
        return _scheduled(graph).with_bodies(_scheduled)


def _scheduled(graph: Graph) -> Graph:
    uses = _uses_by_root(graph)
    ops: list[Op] = []
    for part in _parts(graph):
        first = len(ops)
        if part[0].phase is not Phase.UPDATE:
            lives = _find_lives(graph, part, first, uses)
            needs = find_dependencies(graph, part)
            part = [part[index] for index in _best_order(lives, needs)]
        ops += part
    return graph.with_ops(ops)


def _parts(graph: Graph) -> Iterator[list[Op]]:
    """Runs of ops whose order is free as far as data go.

    Copies between the chips of a pipeline follow all stages of a cycle.
    """
    is_pipeline = graph.execution.strategy is Strategy.PIPELINED

    def part_of(op: Op) -> tuple[bool, bool, int]:
        is_copy = is_pipeline and op.kind == "chip_copy"
        return op.phase is Phase.UPDATE, is_copy, op.stage if is_pipeline else 0

    for _, run in groupby(graph.ops, part_of):
        yield list(run)


def _uses_by_root(graph: Graph) -> dict[str, tuple[int, int]]:
    """Positions of the first and last op that touch each owner of memory."""
    uses: dict[str, tuple[int, int]] = {}
    for position, op in enumerate(graph.ops):
        for root in map(graph.root, (*op.inputs, *op.outputs)):
            first, _ = uses.get(root, (position, position))
            uses[root] = (first, position)
    for root in map(graph.root, graph.outputs):
        uses[root] = (uses.get(root, (0, 0))[0], len(graph.ops))
    return uses


@dataclass(frozen=True)
class _Memory:
    """What owns transient memory, as one part of the graph sees it.

    It is taken from the start or by the first op that touches it, and is given back
    by the last op that does, or not before the end of the part.
    """

    num_bytes: int
    chip: int
    is_given: bool
    is_kept: bool


@dataclass(frozen=True)
class _Lives:
    """The memory of a part, and which of it each op touches."""

    memories: Sequence[_Memory]
    touched: Sequence[tuple[int, ...]]

    def peaks(self, order: _Order) -> dict[int, int]:
        """The most bytes that are live at once, by chip."""
        begins, ends = self.begins(order), self.ends(order)
        live = {memory.chip: 0 for memory in self.memories}
        for memory in self.memories:
            live[memory.chip] += memory.num_bytes * memory.is_given
        peaks = dict(live)
        for place, index in enumerate(order):
            own = [(key, self.memories[key]) for key in self.touched[index]]
            for key, memory in own:
                live[memory.chip] += memory.num_bytes * (begins[key] == place)
            for key, memory in own:
                peaks[memory.chip] = max(peaks[memory.chip], live[memory.chip])
                live[memory.chip] -= memory.num_bytes * (ends[key] == place)
        return peaks

    def begins(self, order: _Order) -> list[int]:
        """The places in the order at which memory is taken, -1 if it is given."""
        places = [-1] * len(self.memories)
        for place in reversed(range(len(order))):
            for key in self.touched[order[place]]:
                places[key] = -1 if self.memories[key].is_given else place
        return places

    def ends(self, order: _Order) -> list[int]:
        """The places in the order after which memory is free, -1 if it is kept."""
        places = [-1] * len(self.memories)
        for place, index in enumerate(order):
            for key in self.touched[index]:
                places[key] = -1 if self.memories[key].is_kept else place
        return places

    def total(self, keys: Iterable[int]) -> int:
        """Bytes of some of the memory."""
        return sum(self.memories[key].num_bytes for key in keys)


def _find_lives(
    graph: Graph, part: Sequence[Op], first: int, uses: dict[str, tuple[int, int]]
) -> _Lives:
    """The memory that ops touch which stand from position `first` in the graph."""
    keys: dict[str, int] = {}
    memories: list[_Memory] = []
    touched: list[tuple[int, ...]] = []
    for op in part:
        roots = dict.fromkeys(map(graph.root, (*op.outputs, *op.inputs)))
        own = [r for r in roots if graph.values[r].role in _TRANSIENT]
        for root in own:
            if root not in keys:
                # Counted on the chip of the first op that touches it; of all that is
                # transient only an input may be read on several.
                value, (begin, end) = graph.values[root], uses[root]
                keys[root] = len(memories)
                is_given = begin < first or value.role is Role.INPUT
                is_kept = end >= first + len(part)
                memory = _Memory(value.type.num_bytes, op.chip, is_given, is_kept)
                memories.append(memory)
        touched.append(tuple(keys[root] for root in own))
    return _Lives(memories, touched)


def _best_order(lives: _Lives, needs: _Needs) -> _Order:
    """The order with the lowest peaks, the given one if none is better."""
    best = order = list(range(len(needs)))
    peaks = lives.peaks(best)
    # Hoisted first: what is freed early makes room, and sinking begins from there.
    for move in (_hoisted, _sunk):
        order = move(lives, needs, order)
        found = lives.peaks(order)
        if found != peaks and all(found[chip] <= peaks[chip] for chip in peaks):
            best, peaks = order, found
    return best


def _hoisted(lives: _Lives, needs: _Needs, order: _Order) -> _Order:
    """Ops that free as much as they make follow at once what lets them free it."""
    begins, ends = lives.begins(order), lives.ends(order)
    slots = [0] * len(order)
    latest = [0] * len(lives.memories)
    for place, index in enumerate(order):
        freed = [key for key in lives.touched[index] if ends[key] == place]
        made = [key for key in lives.touched[index] if begins[key] == place]
        before = [slots[need] for need in needs[index]]
        before += [latest[key] for key in freed]
        # An op that frees less than it makes would only raise the peak earlier.
        is_hoisted = freed and lives.total(freed) >= lives.total(made)
        slots[index] = max(before) if is_hoisted else place
        for key in lives.touched[index]:
            latest[key] = max(latest[key], slots[index])
    return _sorted(order, slots)


def _sunk(lives: _Lives, needs: _Needs, order: _Order) -> _Order:
    """Ops that make as much as they free wait for the first op that needs them."""
    begins = lives.begins(order)
    never = len(order)
    slots = [0] * never
    wanted = [never] * never
    latest = [never if memory.is_kept else -1 for memory in lives.memories]
    for place in reversed(range(never)):
        index = order[place]
        made = [key for key in lives.touched[index] if begins[key] == place]
        kept = [key for key in lives.touched[index] if latest[key] < wanted[index]]
        is_sunk = wanted[index] < never and lives.total(made) >= lives.total(kept)
        slots[index] = wanted[index] if is_sunk else place
        for need in needs[index]:
            wanted[need] = min(wanted[need], slots[index])
        for key in lives.touched[index]:
            latest[key] = max(latest[key], slots[index])
    return _sorted(order, slots)


def _sorted(order: _Order, slots: Sequence[int]) -> _Order:
    """The order with each op in its slot, as before within a slot."""
    # Stable: ops of one slot keep the order in which they satisfied their needs.
    return sorted(order, key=slots.__getitem__)
