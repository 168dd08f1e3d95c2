"""Pipelined execution: stages work on different micro-batches at the same time.

Forward stages 0..S-1 are followed by backward stages S..2S-2 in mirrored order; the
last forward stage also does its own backward work. A value that is read in a later
stage is kept in a ring on the chip that reads it, one entry for every micro-batch
between the two, or copied over the links first if the chip is another one. With
recomputation a backward stage starts from the inputs of its forward stage.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from popple.errors import PlacementError
from popple.graph import Graph, Op, Phase, Role, Strategy, TensorType, Value, get_op
from popple.place.recompute import recompute_stages
from popple.place.shard import Shard, given_homes, insert_copies, with_inputs


@dataclass(frozen=True)
class Pipeline:
    """Turns a graph whose ops have stages into a pipeline."""

    recompute: bool = True

    def apply(self, graph: Graph) -> Graph:
        """The graph with numbered stages, copies and rings between them."""
        num_forward = 1 + max((op.stage for op in graph.ops), default=0)
        if num_forward == 1:
            return Shard().apply(graph)
        staged = _number_stages(graph, num_forward)
        if self.recompute and graph.is_training:
            staged = recompute_stages(staged, num_forward)
        staged = _repeat_views(staged)
        return _Transport(staged).run()


def _number_stages(graph: Graph, num_forward: int) -> Graph:
    """Give backward ops their stage and every op a stage no earlier than its inputs."""
    made: dict[str, Op] = {}
    ops: list[Op] = []
    for op in graph.ops:
        if op.phase is Phase.BACKWARD:
            op = replace(op, stage=2 * num_forward - 2 - op.stage)
        if op.phase is not Phase.UPDATE:
            op = _not_before_inputs(op, made)
        ops.append(op)
        made.update((name, op) for name in op.outputs)
    last = num_forward - 1
    num_stages = 2 * last + 1 if graph.is_training else num_forward
    execution = replace(
        graph.execution,
        strategy=Strategy.PIPELINED,
        num_chips=1 + max(op.chip for op in ops),
        num_stages=num_stages,
    )
    return replace(graph, ops=tuple(ops), execution=execution)


def _not_before_inputs(op: Op, made: dict[str, Op]) -> Op:
    """Refuse a forward op that reads from a later stage; move a backward one there."""
    sources = [made[name] for name in op.inputs if name in made]
    latest = max(sources, key=lambda source: source.stage, default=op)
    if latest.stage <= op.stage:
        return op
    if op.phase is Phase.BACKWARD:
        return op.with_place(latest.chip, latest.stage)
    raise PlacementError(
        f"{op.kind} {op.name} is in pipeline stage {op.stage} but reads the result of "
        f"{latest.kind} {latest.name} in stage {latest.stage}.",
        where=op.line,
        remedy="Data must flow from earlier to later stages: order the blocks as "
        "forward runs them.",
    )


def _repeat_views(graph: Graph) -> Graph:
    """Take views anew in every stage that reads them: only owners of memory travel."""
    made = {name: op for op in graph.ops for name in op.outputs}
    clones: dict[tuple[str, int], str] = {}
    values: dict[str, Value] = {}
    ops: list[Op] = []

    def taken(name: str, reader: Op) -> str:
        source = made.get(name)
        if source is None or not get_op(source.kind).is_view:
            return name
        if reader.phase is Phase.UPDATE or source.stage == reader.stage:
            return name
        key = (name, reader.stage)
        if key not in clones:
            base = taken(source.inputs[0], reader)
            clone = Value(f"{name}.at{reader.stage}", graph.type_of(name), storage=base)
            clones[key] = clone.name
            values[clone.name] = clone
            ops.append(
                replace(
                    source,
                    name=clone.name,
                    inputs=(base,),
                    outputs=(clone.name,),
                    phase=reader.phase,
                    chip=reader.chip,
                    stage=reader.stage,
                )
            )
        return clones[key]

    for op in graph.ops:
        renamed = {n: r for n in op.inputs if (r := taken(n, op)) != n}
        moved, shared = with_inputs(graph, op, renamed)
        values |= shared
        ops.append(moved)
    return graph.with_ops(ops, values.values())


@dataclass
class _StageOps:
    """Ops of one stage in the order they run: restores, body, stashes, copies out."""

    restores: list[Op] = field(default_factory=list[Op])
    body: list[Op] = field(default_factory=list[Op])
    stashes: list[Op] = field(default_factory=list[Op])
    copies: list[Op] = field(default_factory=list[Op])

    def in_order(self) -> list[Op]:
        return [*self.restores, *self.body, *self.stashes, *self.copies]


class _Transport:
    """Carries values between stages: rings on one chip, copies between chips."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._stages: defaultdict[int, _StageOps] = defaultdict(_StageOps)
        self._values: dict[str, Value] = {}
        self._carried: dict[tuple[str, int, int], str] = {}
        self._arrivals: dict[tuple[str, int], tuple[str, int]] = {}
        self._made: dict[str, tuple[int, int]] = {}
        self._homes = given_homes(graph)

    def run(self) -> Graph:
        """The graph with everything carried to where it is read."""
        steps = [op for op in self._graph.ops if op.phase is not Phase.UPDATE]
        for op in sorted(steps, key=lambda op: op.stage):
            self._add(op)
        updates = [op for op in self._graph.ops if op.phase is Phase.UPDATE]
        staged = [op for _, s in sorted(self._stages.items()) for op in s.in_order()]
        graph = self._graph.with_ops(staged, self._values.values())
        return _with_update_copies(graph, staged, updates)

    def _add(self, op: Op) -> None:
        renamed = {n: r for n in op.inputs if (r := self._carry(n, op)) != n}
        moved, shared = with_inputs(self._graph, op, renamed)
        self._values |= shared
        self._stages[op.stage].body.append(moved)
        self._made.update((name, (op.chip, op.stage)) for name in op.outputs)

    def _carry(self, name: str, reader: Op) -> str:
        """Name under which the reader finds the value on its chip in its stage."""
        role = self._graph.values[name].role
        if role is Role.CONSTANT:
            return name
        if role in (Role.WEIGHT, Role.STATE):
            return self._carry_given(name, reader)
        if role is Role.INPUT:  # streamed in by the first stage that reads it
            self._made.setdefault(name, (reader.chip, reader.stage))
        chip, stage = self._made[name]
        if stage == reader.stage:
            return name
        key = (name, reader.chip, reader.stage)
        if key not in self._carried:
            self._carried[key] = self._transport(name, chip, stage, reader)
        return self._carried[key]

    def _carry_given(self, name: str, reader: Op) -> str:
        home = self._homes.get(name, reader.chip)
        if home == reader.chip:
            return name
        key = (name, reader.chip, reader.stage)
        if key not in self._carried:
            before = max(reader.stage - 1, 0)
            self._carried[key] = self._copy(name, home, before, reader)
        return self._carried[key]

    def _transport(self, name: str, chip: int, stage: int, reader: Op) -> str:
        """Ring on one chip, copy to the next stage, or copy and ring beyond that.

        What has been copied to a chip once is kept there for its later stages.
        """
        distance = reader.stage - stage
        if chip == reader.chip:
            return self._ring(name, distance + 1, stage, reader)
        if arrival := self._arrivals.get((name, reader.chip)):
            return self._transport(arrival[0], reader.chip, arrival[1], reader)
        copied = self._copy(name, chip, stage, reader)
        if distance > 1:
            copied = self._ring(copied, distance, reader.stage, reader)
        self._arrivals[name, reader.chip] = (copied, reader.stage)
        return copied

    def _copy(self, name: str, source: int, stage: int, reader: Op) -> str:
        value = self._declare(f"{name}.on{reader.chip}for{reader.stage}", name)
        copy = self._carrier(reader, "chip_copy", value, (name,), {"source": source})
        self._stages[stage].copies.append(replace(copy, stage=stage))
        return value

    def _ring(self, name: str, depth: int, stage: int, reader: Op) -> str:
        """Stash in `stage`, restore in the reader's stage."""
        kind = self._type_of(name)
        ring = Value(
            f"{name}.ring{reader.stage}",
            TensorType(kind.dtype, (depth, *kind.shape)),
            Role.STATE,
        )
        pushed = Value(f"{ring.name}.pushed", ring.type, storage=ring.name)
        self._values |= {ring.name: ring, pushed.name: pushed}
        attrs = {"depth": depth}
        inputs = (ring.name, name)
        stash = self._carrier(reader, "stash", pushed.name, inputs, attrs)
        value = self._declare(f"{name}.restored{reader.stage}", name)
        restore = self._carrier(reader, "restore", value, (pushed.name,), attrs)
        if stage == reader.stage:  # arrived by copy: push and pop in one stage
            self._stages[stage].restores += [stash, restore]
        else:
            stashed = replace(stash, stage=stage, phase=Phase.FORWARD)
            self._stages[stage].stashes.append(stashed)
            self._stages[reader.stage].restores.append(restore)
        return value

    def _carrier(
        self,
        reader: Op,
        kind: str,
        output: str,
        inputs: tuple[str, ...],
        attrs: dict[str, int],
    ) -> Op:
        return replace(
            reader,
            name=output,
            kind=kind,
            inputs=inputs,
            outputs=(output,),
            attrs=dict(attrs),
        )

    def _declare(self, name: str, like: str) -> str:
        self._values[name] = Value(name, self._type_of(like))
        return name

    def _type_of(self, name: str) -> TensorType:
        value = self._values.get(name) or self._graph.values[name]
        return value.type


def _with_update_copies(graph: Graph, staged: list[Op], updates: list[Op]) -> Graph:
    """Updates run where the weight lives; gradients made elsewhere are copied."""
    made = {name: op.chip for op in staged for name in op.outputs}
    homes = given_homes(graph)
    placed = [
        op.with_place(homes.get(op.inputs[0], made.get(op.inputs[0], op.chip)), 0)
        for op in updates
    ]
    return insert_copies(graph, (*staged, *placed))
