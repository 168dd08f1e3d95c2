"""Walker: goes through the ops of a TensorFlow program and has each of them lowered.

In: a graph and what its inputs are. Out: what its outputs are, with ops written to the
builder and effects noted on the way. Calls, loops and branches are walked into by the
functions of `control`, which are handed in as a table.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from popple.capture.tensorflow.builder import GraphBuilder, Mark
from popple.capture.tensorflow.constants import fold
from popple.capture.tensorflow.context import OpContext
from popple.capture.tensorflow.effects import Effects
from popple.capture.tensorflow.framework import (
    Operation,
    Tensor,
    TensorFlowGraph,
    constant_array,
    static_shape,
    type_of,
)
from popple.capture.tensorflow.known import Known, NotTaken
from popple.capture.tensorflow.ops import find_rule
from popple.capture.tensorflow.order import (
    changes_something,
    needed_ops,
    units_in_order,
)
from popple.capture.tensorflow.tags import Tag, Tagger, either
from popple.capture.tensorflow.types import is_on_machine, tensor_type
from popple.graph import Phase, Role, get_op
from popple.marks import HALF

# Ops without inputs that stand for the same thing inside and outside a program.
_GIVEN = frozenset({"Const", "VarHandleOp"})

# Ops that hand on the handle of a variable.
_PASSED = frozenset({"Enter", "Identity", "Switch"})

Environment: TypeAlias = dict[int, Known]
"""What tensors are, by their ids."""


@dataclass(frozen=True)
class Surroundings:
    """What the calls around a function say about its ops.

    `loops` are the old-style loops around them, `outlined` the calls of outlined
    functions, outermost first.
    """

    scope: str = ""
    phase: Phase | None = None
    mark: Mark = field(default_factory=Mark)
    loops: tuple[Any, ...] = ()
    outlined: tuple[str, ...] = ()

    def inside(self, tag: Tag) -> Surroundings:
        """The surroundings of the ops in a function that the tagged op calls."""
        return Surroundings(tag.name.rpartition("/")[0], tag.phase, tag.mark)


@dataclass(frozen=True)
class Call:
    """A call, loop or branch to walk into."""

    op: Operation
    inputs: tuple[Known, ...]
    around: Surroundings


Control: TypeAlias = "Callable[[Walker, Call], Sequence[Known]]"


class Units(Protocol):
    """Ops that are walked together: loops of old style, regions, outlined calls."""

    def keys_of(
        self, ops: Sequence[Operation], around: Surroundings
    ) -> Callable[[Operation], Hashable]:
        """Tells what the ops of a unit have in common; None for an op by itself."""
        ...

    def taken(
        self, ops: Sequence[Operation], found: Environment
    ) -> Sequence[Operation]:
        """Ops but for those in old-style branches that are not taken."""
        ...

    def walk(
        self,
        walker: Walker,
        key: Hashable,
        ops: Sequence[Operation],
        found: Environment,
        around: Surroundings,
    ) -> None:
        """Walk a unit; what it gives is added to `found`."""
        ...


@dataclass
class Walker:
    """A walk through a program. `remarks` tell users what had to be guessed.

    `trips` are those of the program's own loops, of the deepest nest of them.
    """

    builder: GraphBuilder
    effects: Effects
    control: Mapping[str, Control]
    units: Units
    replicas: int = 1
    tagger: Tagger = field(default_factory=Tagger)
    remarks: list[str] = field(default_factory=list[str])
    trips: tuple[int, ...] = ()
    _nest: list[int] = field(default_factory=list[int])
    _constants: dict[Operation, Known] = field(default_factory=dict[Any, Known])

    def enter_loop(self, num_trips: int) -> None:
        """The program's own loop begins."""
        self._nest.append(num_trips)
        # Within a loop variables are what the trip before left in them, not what the
        # program wrote before the loop.
        self.effects.forget_writes()
        self.effects.loop_depth = len(self._nest)
        # The deepest nest is the loop over micro-batches (`repetition`).
        if len(self._nest) > len(self.trips):
            self.trips = tuple(self._nest)

    def leave_loop(self) -> None:
        """The program's own loop ends."""
        self._nest.pop()
        self.effects.loop_depth = len(self._nest)

    def walk_graph(
        self, graph: TensorFlowGraph, inputs: Sequence[Known], around: Surroundings
    ) -> list[Known]:
        """What the outputs of a function are, given its inputs."""
        given = zip(graph.inputs, inputs, strict=True)
        found: Environment = {id(tensor): known for tensor, known in given}
        ops = graph.get_operations()
        roots = [*(tensor.op for tensor in graph.outputs), *graph.control_outputs]
        roots += filter(changes_something, ops)  # which functions always run
        self.walk_ops(needed_ops(ops, roots), found, around)
        return [found.get(id(tensor)) for tensor in graph.outputs]

    def walk_ops(
        self, ops: Sequence[Operation], found: Environment, around: Surroundings
    ) -> None:
        """Lower ops, inputs first; what they give is added to `found`."""
        ops = self.units.taken(ops, found)
        for key, unit in units_in_order(ops, self.units.keys_of(ops, around)):
            if key is None:
                self.walk_op(unit[0], found, around)
            else:
                self.units.walk(self, key, unit, found, around)

    def walk_op(self, op: Operation, found: Environment, around: Surroundings) -> None:
        """Lower one op, unless what it gives is known already."""
        if op.outputs and all(id(output) in found for output in op.outputs):
            return
        inputs = tuple(self.find(tensor, found) for tensor in op.inputs)
        results: Sequence[Known] = [NotTaken()] * len(op.outputs)
        # A Merge joins branches, so an input that is not taken is what it is there for.
        if op.type == "Merge" or not any(isinstance(k, NotTaken) for k in inputs):
            results = self._lower(op, inputs, around)
        found.update(
            (id(output), known)
            for output, known in zip(op.outputs, results, strict=True)
        )

    def _lower(
        self, op: Operation, inputs: tuple[Known, ...], around: Surroundings
    ) -> Sequence[Known]:
        if op.type == "Const":
            return [self._constant(op)]
        if op.type == "Placeholder":  # fed by the host, wherever it was put
            return [self._from_outside(op.outputs[0])]
        if (control := self.control.get(op.type)) is not None:
            return control(self, Call(op, inputs, around))
        if (folded := fold(op, inputs)) is not None:
            return folded
        tag = self.tag(op, around)
        if tag.phase is None:
            tag = replace(tag, phase=self.phase_behind(op, inputs))
        context = OpContext(self.builder, self.effects, op, tag, inputs)
        if context.attr(HALF) and op.outputs[0].dtype.is_bool:
            return [None]  # asked so that half precision is as on the machine
        results = find_rule(type_of(op))(context)
        # Operands that are kept for an operator give it nothing back.
        return results or [None] * len(op.outputs)

    def _constant(self, op: Operation) -> Known:
        """The value of a constant, the same array however often it is come by."""
        # The builder tells constants by the identity of their arrays: a second array
        # would be a second constant in tile memory.
        if op not in self._constants:
            is_numeric = is_on_machine(op.outputs[0].dtype)
            self._constants[op] = constant_array(op) if is_numeric else None
        return self._constants[op]

    def tag(self, op: Operation, around: Surroundings) -> Tag:
        """The tag of an op in these surroundings."""
        tag = self.tagger.tag(op, around.scope, around.phase)
        self.effects.note(tag)
        mark = either(tag.mark, around.mark)
        return replace(tag, mark=replace(mark, depth=self.effects.loop_depth))

    def find(self, tensor: Tensor, found: Environment) -> Known:
        """What a tensor is; one from outside the program is streamed in."""
        if id(tensor) not in found:
            found[id(tensor)] = self._from_outside(tensor)
        return found[id(tensor)]

    def _from_outside(self, tensor: Tensor) -> Known:
        if tensor.op.type in _GIVEN:
            return self._lower(tensor.op, (), Surroundings())[tensor.value_index]
        # Outside of the program walked, so no environment has them; only handles are
        # followed, since numbers that enter are streamed.
        if tensor.op.type in _PASSED and not is_on_machine(tensor.dtype):
            return self._from_outside(tensor.op.inputs[0])
        if tensor.op.type == "ReadVariableOp":  # of a variable that stays
            handle = self._from_outside(tensor.op.inputs[0])
            return self._lower(tensor.op, (handle,), Surroundings())[0]
        shape = static_shape(tensor)
        if shape is None or not is_on_machine(tensor.dtype):
            return None
        kind = tensor_type(tensor.dtype, shape)
        return self.builder.declare(tensor.op.name, kind, Role.INPUT)

    def phase_behind(self, op: Operation, inputs: Sequence[Known]) -> Phase:
        """The phase of an op that does not say: what reads gradients is the update.

        Sums of gradients belong to the backward pass; counters that are written once
        optimisers have been at work, to the update.
        """
        phases = {self._phase_of(known) for known in inputs if isinstance(known, str)}
        if Phase.UPDATE in phases:
            return Phase.UPDATE
        if Phase.BACKWARD in phases:
            return Phase.BACKWARD if op.type == "AddN" else Phase.UPDATE
        if self.effects.updates and op.type.startswith("Assign"):
            return Phase.UPDATE
        return Phase.FORWARD

    def _phase_of(self, name: str) -> Phase | None:
        """The phase in which a value is made; views are as old as what they show."""
        maker = self.builder.find_maker(name)
        while maker is not None and get_op(maker.kind).is_view:
            maker = self.builder.find_maker(maker.inputs[0])
        return None if maker is None else maker.phase
