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
from popple.graph import Graph, Op, Phase, Redone, Role, Strategy, TensorType, Value
from popple.place.recompute import Recompute, recompute_stages
from popple.place.repeat_views import repeat_views
from popple.place.shard import Shard, given_homes, insert_copies, with_inputs
from popple.quick import replaced
from popple.units import ceil_div


@dataclass(frozen=True)
class Pipeline:
    """Turns a graph whose ops have stages into a pipeline.

    `interleaved` lets forward and backward stages take turns: half as much is stashed,
    and every chip idles while its neighbours do the longer of the two. `redone` says
    what is recomputed, None is as in `Recompute`.
    """

    recompute: bool = True
    interleaved: bool = False
    redone: Redone | None = None

    def apply(self, graph: Graph) -> Graph:
        """The graph with numbered stages, copies and rings between them."""
        num_forward = _num_forward(graph)
        if num_forward == 1:
            graph = Recompute(self.redone).apply(graph) if self.recompute else graph
            return Shard().apply(graph)
        staged = number_stages(graph)
        if self.interleaved and graph.is_training:
            execution = replace(staged.execution, interval=2)
            staged = replace(staged, execution=execution)
        if self.recompute and graph.is_training:
            redone = self.redone or Redone.ALL
            staged = recompute_stages(staged, num_forward, redone)
        staged = repeat_views(staged)
        return _Transport(staged).run()


def number_stages(graph: Graph) -> Graph:
    """Number stages without gaps, backward ones behind forward ones.

    PlacementError if a forward op reads from a later stage, or if a stage lies on
    more than one chip.
    """
    num_forward = _num_forward(graph)
    numbers = {stage: number for number, stage in enumerate(_stages_in_use(graph))}
    made: dict[str, Op] = {}
    ops: list[Op] = []
    for op in graph.ops:
        if op.phase is not Phase.UPDATE:
            op = _not_before_inputs(_numbered(op, numbers), made)
        ops.append(op)
        made.update((name, op) for name in op.outputs)
    _verify_one_chip_per_stage(ops)
    execution = replace(
        graph.execution,
        strategy=Strategy.PIPELINED,
        num_chips=1 + max((op.chip for op in ops), default=0),
        num_stages=2 * num_forward - 1 if graph.is_training else num_forward,
        num_forward_stages=num_forward,
    )
    return replace(graph, ops=tuple(ops), execution=execution)


def _stages_in_use(graph: Graph) -> list[int]:
    return sorted({op.stage for op in graph.ops if op.phase is not Phase.UPDATE})


def _num_forward(graph: Graph) -> int:
    return max(len(_stages_in_use(graph)), 1)


def _numbered(op: Op, numbers: dict[int, int]) -> Op:
    stage = numbers[op.stage]
    if op.phase is Phase.BACKWARD:
        stage = 2 * len(numbers) - 2 - stage
    return op if stage == op.stage else replaced(op, stage=stage)


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


def _verify_one_chip_per_stage(ops: list[Op]) -> None:
    first: dict[int, Op] = {}
    for op in ops:
        if op.phase is Phase.UPDATE:
            continue
        other = first.setdefault(op.stage, op)
        if other.chip != op.chip:
            raise PlacementError(
                f"{op.kind} {op.name} is on chip {op.chip} but belongs to pipeline "
                f"stage {op.stage}, which {other.kind} {other.name} puts on chip "
                f"{other.chip}.",
                where=op.line,
                remedy="A stage runs on one chip: give its blocks the same one, or "
                "split the stage.",
            )


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
        self._steps = _in_stage_order(graph)
        self._stages: defaultdict[int, _StageOps] = defaultdict(_StageOps)
        self._values: dict[str, Value] = {}
        self._carried: dict[tuple[str, int, int], str] = {}
        self._arrivals: dict[tuple[str, int], tuple[str, Op]] = {}
        self._made: dict[str, Op] = {}  # the op that makes or first reads a value
        self._homes = given_homes(graph, self._steps)

    def run(self) -> Graph:
        """The graph with everything carried to where it is read."""
        for op in self._steps:
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
        self._made.update((name, op) for name in op.outputs)

    def _carry(self, name: str, reader: Op) -> str:
        """Name under which the reader finds the value on its chip in its stage."""
        role = self._graph.values[name].role
        if role is Role.CONSTANT:
            return name
        if role in (Role.WEIGHT, Role.STATE):
            return self._carry_given(name, reader)
        if role is Role.INPUT:  # streamed in by the first stage that reads it
            self._made.setdefault(name, reader)
        source = self._made[name]
        if source.stage == reader.stage:
            return name
        key = (name, reader.chip, reader.stage)
        if key not in self._carried:
            self._carried[key] = self._transport(name, source, reader)
        return self._carried[key]

    def _carry_given(self, name: str, reader: Op) -> str:
        home = self._homes.get(name, reader.chip)
        if home == reader.chip:
            return name
        key = (name, reader.chip, reader.stage)
        if key not in self._carried:
            # Its home is the earliest stage that reads it, so there is one before.
            before = replaced(reader, chip=home, stage=reader.stage - 1)
            self._carried[key] = self._copy(name, before, reader)
        return self._carried[key]

    def _transport(self, name: str, source: Op, reader: Op) -> str:
        """Ring on one chip, copy to the next stage, or copy and ring beyond that.

        What has been copied to a chip once is kept there for its later stages.
        """
        execution = self._graph.execution
        interval = execution.interval
        distance = execution.cycle_of(reader.stage) - execution.cycle_of(source.stage)
        if source.chip == reader.chip:
            return self._ring(name, distance // interval + 1, source, reader)
        if arrival := self._arrivals.get((name, reader.chip)):
            return self._transport(*arrival, reader)
        copied = self._copy(name, source, reader)
        if distance > interval:
            copied = self._ring(copied, ceil_div(distance, interval), reader, reader)
        self._arrivals[name, reader.chip] = (copied, reader)
        return copied

    def _copy(self, name: str, source: Op, reader: Op) -> str:
        """Copy at the end of the source's stage, to the reader's chip."""
        value = self._declare(f"{name}.on{reader.chip}for{reader.stage}", name)
        attrs = {"source": source.chip}
        copy = reader.beside(value, "chip_copy", (name,), (value,), attrs)
        copy = replaced(copy, stage=source.stage, phase=source.phase)
        self._stages[source.stage].copies.append(copy)
        return value

    def _ring(self, name: str, depth: int, source: Op, reader: Op) -> str:
        """Stash in the source's stage, restore in the reader's."""
        kind = self._type_of(name)
        ring = Value(
            f"{name}.ring{reader.stage}",
            TensorType(kind.dtype, (depth, *kind.shape)),
            Role.STATE,
        )
        pushed = Value(f"{ring.name}.pushed", ring.type, storage=ring.name)
        self._values |= {ring.name: ring, pushed.name: pushed}
        stash = reader.beside(pushed.name, "stash", (ring.name, name), (pushed.name,))
        stash = replaced(stash, stage=source.stage, phase=source.phase)
        value = self._declare(f"{name}.restored{reader.stage}", name)
        restore = reader.beside(value, "restore", (pushed.name,), (value,))
        if source.stage == reader.stage:  # arrived by copy: push and pop in one stage
            self._stages[reader.stage].restores += [stash, restore]
        else:
            self._stages[source.stage].stashes.append(stash)
            self._stages[reader.stage].restores.append(restore)
        return value

    def _declare(self, name: str, like: str) -> str:
        self._values[name] = Value(name, self._type_of(like))
        return name

    def _type_of(self, name: str) -> TensorType:
        value = self._values.get(name) or self._graph.values[name]
        return value.type


def _in_stage_order(graph: Graph) -> list[Op]:
    steps = [op for op in graph.ops if op.phase is not Phase.UPDATE]
    return sorted(steps, key=lambda op: op.stage)


def _with_update_copies(graph: Graph, staged: list[Op], updates: list[Op]) -> Graph:
    """Updates run where the weight lives; gradients made elsewhere are copied."""
    made = {name: op.chip for op in staged for name in op.outputs}
    homes = made | given_homes(graph, staged)
    placed: list[Op] = []
    for op in updates:
        placed.append(op.with_place(homes.get(op.inputs[0], op.chip), 0))
        homes.update((name, placed[-1].chip) for name in op.outputs)
    return insert_copies(graph, (*staged, *placed))
