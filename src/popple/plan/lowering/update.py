"""The weight update: chips work at the same time except where they communicate.

Ops are sorted into rounds. A round is the work that needs no further communication,
all chips in parallel, then the communication it makes possible: collectives, whose
rings join equal chips of the replicas, chips in parallel; copies between chips one
after the other. What lies off the chip is loaded just before the op that reads it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from popple.graph import Graph, Op, Phase, get_op
from popple.plan.lowering.emit import Emitter
from popple.plan.lowering.streams import UPDATE_STAGE, Streams
from popple.plan.lowering.structure import at_once, by_chip, form_of
from popple.program import Step


@dataclass
class _Round:
    """Ops that may run once all earlier rounds are over."""

    local: list[Op] = field(default_factory=list[Op])
    collectives: list[Op] = field(default_factory=list[Op])
    copies: list[Op] = field(default_factory=list[Op])

    def kind_of(self, op: Op) -> list[Op]:
        """The list an op belongs to."""
        if op.kind == "chip_copy":
            return self.copies
        return self.collectives if _is_collective(op) else self.local


@dataclass
class _Merged:
    """Collectives of one chip that are made at the same time."""

    chip: int
    num_bytes: int = 0
    lists: list[list[Step]] = field(default_factory=list[list[Step]])


def lower_update(graph: Graph, emitter: Emitter, streams: Streams) -> list[Step]:
    """The steps of the update phase with its host traffic, none without updates."""
    steps: list[Step] = [
        emitter.stream_in(*item) for item in streams.inputs.get(UPDATE_STAGE, ())
    ]
    ops = [op for op in graph.ops if op.phase is Phase.UPDATE]
    for number, current in enumerate(_rounds(graph, ops)):
        steps += _parallel_steps(emitter, current.local, f"update{number}")
        steps += _collective_steps(graph, emitter, current.collectives, number)
        for op in current.copies:
            steps += emitter.op_steps(op)
    steps += [
        emitter.stream_out(*item) for item in streams.outputs.get(UPDATE_STAGE, ())
    ]
    return steps


def _rounds(graph: Graph, ops: Iterable[Op]) -> list[_Round]:
    """Each op in the first round in which all memory it touches is settled."""
    settled: defaultdict[str, int] = defaultdict(int)
    rounds: list[_Round] = []
    loads: dict[str, Op] = {}
    for op in ops:
        if op.kind == "remote_load":
            loads[op.outputs[0]] = op
            continue
        # Loaded late, state off the chip takes memory for one update at a time.
        own_loads = [loads.pop(name) for name in op.inputs if name in loads]
        used = [name for each in (*own_loads, op) for name in each.inputs]
        touched = {graph.root(name) for name in (*used, *op.outputs)}
        number = max((settled[root] for root in touched), default=0)
        while len(rounds) <= number:
            rounds.append(_Round())
        rounds[number].local += own_loads
        rounds[number].kind_of(op).append(op)
        # Communication ends a round for the memory that it touches.
        after = number + int(op.kind == "chip_copy" or _is_collective(op))
        settled.update((root, after) for root in touched)
    return rounds


def _is_collective(op: Op) -> bool:
    is_local = op.kind == "take_share"
    return get_op(op.kind).family == "collective" and not is_local


def _collective_steps(
    graph: Graph, emitter: Emitter, ops: Iterable[Op], number: int
) -> list[Step]:
    """Collectives of a round, chips in parallel; those of a chip may be merged."""
    name, limit = f"collectives{number}", graph.execution.merged_bytes
    groups: dict[tuple[object, ...], list[_Merged]] = {}
    for op in ops:
        steps, kind = emitter.op_steps(op), graph.type_of(op.inputs[0])
        # Only collectives of one type with equal steps run as one, up to a size.
        alike = groups.setdefault((op.chip, op.kind, kind.dtype, form_of(steps)), [])
        if not alike or alike[-1].num_bytes + kind.num_bytes > limit:
            alike.append(_Merged(op.chip))
        alike[-1].num_bytes += kind.num_bytes
        alike[-1].lists.append(steps)
    found: defaultdict[int, list[Step]] = defaultdict(list)
    for each in (each for alike in groups.values() for each in alike):
        label = f"{name}/{len(found[each.chip])}"
        found[each.chip] += at_once(each.lists, label)
    busy = {chip: steps for chip, steps in found.items() if steps}
    return [by_chip(busy, name)] if busy else []


def _parallel_steps(emitter: Emitter, ops: Iterable[Op], name: str) -> list[Step]:
    steps: defaultdict[int, list[Step]] = defaultdict(list)
    for op in ops:
        steps[op.chip] += emitter.op_steps(op)
    busy = {chip: found for chip, found in steps.items() if found}
    return [by_chip(busy, name)] if busy else []
