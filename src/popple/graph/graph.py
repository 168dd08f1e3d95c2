"""Graph, Op and Value: what is computed, as plain data.

A Graph is a list of ops in execution order over named values. It describes one
micro-batch of one replica plus, for training, one weight update; `Execution` says
how often that is repeated and over how many chips. Front ends write Graphs, the
passes of `place` turn Graphs into Graphs, `plan` reads them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from popple.errors import GraphError, suggest
from popple.graph.attrs import Attr
from popple.graph.notes import NO_NOTES, Notes
from popple.graph.ops import OPS, find_op
from popple.graph.signature import Signature
from popple.graph.types import TensorType
from popple.quick import quick, replaced


class Phase(enum.Enum):
    """Part of a training step an op belongs to. Inference is all forward."""

    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"

    __hash__ = object.__hash__  # as that of `DType`


class Role(enum.Enum):
    """Where a Value comes from, which decides how long it lives."""

    INPUT = "input"  # streamed from the host for every micro-batch
    WEIGHT = "weight"  # a parameter, always live
    STATE = "state"  # optimiser state, buffers, accumulators: always live
    CONSTANT = "constant"  # known when compiling, always live
    ARGUMENT = "argument"  # given to a function by the op that runs it
    ACTIVATION = "activation"  # made by an op, live until its last use

    __hash__ = object.__hash__  # as that of `DType`


class Strategy(enum.Enum):
    """How the chips of one replica share the work."""

    SINGLE = "single"
    SHARDED = "sharded"
    PIPELINED = "pipelined"
    PHASED = "phased"


class Redone(enum.Enum):
    """Which forward work is done again where recomputation is asked for."""

    ALL = "all but checkpoints"
    STANDARD = "all but checkpoints where little is in memory"
    NORMS = "normalisation alone"


@quick
@dataclass(frozen=True, slots=True)
class Value:
    """One tensor. `storage` names the Value whose memory this one shares.

    Views and in-place results share memory; everything else owns its own and
    leaves `storage` empty.
    """

    name: str
    type: TensorType
    role: Role = Role.ACTIVATION
    storage: str = ""


@quick
@dataclass(frozen=True, slots=True)
class Op:
    """One operation: `kind` names its OpDef in the op table.

    `attrs` are checked against that OpDef and completed with its defaults; GraphError
    says which attribute does not belong there. `notes` are advice to the planner.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Attr] = field(default_factory=dict[str, Attr])
    phase: Phase = Phase.FORWARD
    chip: int = 0
    stage: int = 0
    module: str = ""
    line: str = ""
    notes: Notes = NO_NOTES

    def __post_init__(self) -> None:
        definition = find_op(self.kind)
        if definition is None:
            what = f"there is no op {self.kind!r}."
            raise GraphError(what, where=self.line, remedy=suggest(self.kind, OPS))
        if not definition.attrs and not self.attrs:  # most ops, and passes copy many
            return
        subject = f"{self.kind} %{self.name}"
        attrs = definition.schema.complete(self.attrs, subject, self.line)
        object.__setattr__(self, "attrs", attrs)

    @property
    def source_chip(self) -> int:
        """The chip whose memory the op reads: its own, but for copies between chips."""
        # A copy between chips stands on the chip that receives.
        source = self.attrs.get("source") if self.kind == "chip_copy" else None
        return source if isinstance(source, int) else self.chip

    def with_place(self, chip: int, stage: int) -> Op:
        """This op on another chip and pipeline stage."""
        return replaced(self, chip=chip, stage=stage)

    def beside(
        self,
        name: str,
        kind: str,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        attrs: Mapping[str, Attr] | None = None,
    ) -> Op:
        """Another op where this one stands: in its phase, on its chip, of its module.

        Attributes and notes are about this op alone, so the other has none of them.
        """
        return replaced(
            self,
            name=name,
            kind=kind,
            inputs=inputs,
            outputs=outputs,
            attrs=attrs or {},
            notes=NO_NOTES,
        )


@dataclass(frozen=True)
class Execution:
    """How often and on what the graph runs; passes of `place` fill it in.

    Micro-batches enter a pipeline every `interval` cycles: every second one if forward
    and backward stages take turns. There are `num_forward_stages`, then backward ones.
    Collectives that stand side by side are merged up to `merged_bytes`.
    """

    strategy: Strategy = Strategy.SINGLE
    num_chips: int = 1
    num_stages: int = 1
    num_forward_stages: int = 1
    interval: int = 1
    accumulation: int = 1
    replicas: int = 1
    device_iterations: int = 1
    micro_batch: int = 1
    recompute: bool = False
    merged_bytes: int = 0

    def cycle_of(self, stage: int) -> int:
        """The cycle in which a stage works on the first micro-batch.

        Where stages of a chip take turns, one cycle lies between the last forward
        stage and the first backward one, so that the two of a chip never meet.
        """
        is_late = self.interval > 1 and stage >= self.num_forward_stages
        return stage + int(is_late)

    @property
    def samples_per_run(self) -> int:
        """Samples consumed by one run over all replicas."""
        per_update = self.micro_batch * self.accumulation * self.replicas
        return per_update * self.device_iterations


@dataclass(frozen=True)
class Graph:
    """Ops in execution order over named values; `outputs` go back to the host.

    `functions` are graphs that ops of this one run by name. A function has no streams,
    weights or state of its own: it works on what it is given, the arguments, in the
    order in which they are declared, and gives back its `outputs`. Its ops stand on
    chip 0 in stage 0, which mean those of the op that runs it.
    """

    name: str
    values: Mapping[str, Value]
    ops: tuple[Op, ...]
    outputs: tuple[str, ...] = ()
    execution: Execution = field(default_factory=Execution)
    functions: Mapping[str, Graph] = field(default_factory=dict[str, "Graph"])

    def type_of(self, name: str) -> TensorType:
        """Type of the value called `name`."""
        return self.values[name].type

    def signature(self, op: Op) -> Signature:
        """The op's kind, types, attributes and notes as one hashable key.

        That its results are kept says nothing of how it is computed: two norms, one of
        them a checkpoint, share their code.
        """
        notes = op.notes
        if notes.is_checkpoint:
            notes = replace(notes, is_checkpoint=False)
        return Signature(
            op.kind,
            tuple(self.type_of(name) for name in op.inputs),
            tuple(self.type_of(name) for name in op.outputs),
            tuple(sorted(op.attrs.items())),
            notes,
        )

    def root(self, name: str) -> str:
        """Name of the value that owns the memory of `name`."""
        while storage := self.values[name].storage:
            name = storage
        return name

    def with_role(self, role: Role) -> tuple[Value, ...]:
        """All values of one role, in order of declaration."""
        return tuple(v for v in self.values.values() if v.role is role)

    def with_ops(self, ops: Iterable[Op], new_values: Iterable[Value] = ()) -> Graph:
        """A copy with other ops and additional values."""
        values = {**self.values, **{v.name: v for v in new_values}}
        return replace(self, values=values, ops=tuple(ops))

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the values that a function is given, in order."""
        return tuple(value.name for value in self.with_role(Role.ARGUMENT))

    def body(self, name: str) -> Graph:
        """A function, which may run those of this graph itself."""
        return replace(self.functions[name], functions=self.functions)

    def with_bodies(self, change: Callable[[Graph], Graph]) -> Graph:
        """A copy in which every function is changed; without functions, this graph."""
        if not self.functions:
            return self
        # A body sees all functions while it is changed, and keeps none: they belong to
        # the graph.
        bodies = {
            name: replace(change(self.body(name)), functions={})
            for name in self.functions
        }
        return replace(self, functions=bodies)

    @property
    def is_training(self) -> bool:
        """Whether the graph has a backward pass or an update."""
        return any(op.phase is not Phase.FORWARD for op in self.ops)
