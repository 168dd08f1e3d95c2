"""From an optimiser's op back to the gradient that the backward pass made.

Between the two a program may clip and scale, sum over replicas, and add up
micro-batches in accumulators of its own. Sums over replicas and micro-batches are what
the passes of `place` write, so they are taken out here; the rest stays as part of the
update.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from popple.graph import Graph, Op, Phase, Role, get_op

_GIVEN = frozenset({Role.WEIGHT, Role.STATE, Role.CONSTANT, Role.INPUT})


@dataclass
class GradientSearch:
    """Finds gradients and notes what is taken out on the way.

    `is_accumulated`: the passes will add up micro-batches; `is_replicated`: they will
    sum over replicas. `replaced` maps results of ops taken out to what stands for them.
    """

    graph: Graph
    is_accumulated: bool
    is_replicated: bool
    replaced: dict[str, str] = field(default_factory=dict[str, str])
    accumulators: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self._makers = {name: op for op in self.graph.ops for name in op.outputs}
        self._permuted = {
            (op.inputs[0], op.attrs["order"]): op.outputs[0]
            for op in self.graph.ops
            if op.kind == "permute"
        }

    def find(self, name: str) -> str:
        """The gradient behind what an optimiser's op reads."""
        while (before := self._find_before(name)) is not None:
            name = before
        return name

    def instead_of(self, name: str) -> str:
        """What stands for a value if the op that made it is taken out."""
        while name in self.replaced:
            name = self.replaced[name]
        return name

    def _find_before(self, name: str) -> str | None:
        maker = self._makers.get(name)
        if maker is None:
            return None
        # The passes of `place` insert collectives of their own; two would be modelled
        # else.
        if self.is_replicated and get_op(maker.kind).family == "collective":
            return self._take_out(name, maker.inputs[0])
        if self.is_accumulated and (added := self._find_added(maker)):
            return self._take_out(name, added)
        # Behind a permutation dimensions have another order: the gradient is then the
        # view of what is found there that has the order asked for.
        if maker.kind == "permute":
            source = self.find(maker.inputs[0])
            found = self._permuted.get((source, maker.attrs["order"]))
            return None if found == name else found
        if maker.phase is not Phase.UPDATE:
            return None
        # Clipping and scaling keep the shape: of several operands (norms, factors) only
        # the gradient has it.
        shape = self.graph.type_of(name).shape
        candidates = (n for n in maker.inputs if self._is_computed(n))
        return next((n for n in candidates if self._shape(n) == shape), None)

    def _find_added(self, op: Op) -> str | None:
        """What an op adds to an accumulator, if that is what it does."""
        if op.kind != "add" or len(op.inputs) != 2:
            return None
        states = [n for n in op.inputs if self._is_state(n)]
        others = [n for n in op.inputs if not self._is_state(n)]
        # A sum of two gradients is no accumulation, neither is one of two states.
        if len(states) != 1:
            return None
        self.accumulators.add(self._root_of_state(states[0]))
        return others[0]

    def _root_of_state(self, name: str) -> str:
        maker = self._makers.get(name)
        while maker is not None and maker.kind == "mul":
            shape = self._shape(name)
            name = next(n for n in maker.inputs if self._shape(n) == shape)
            maker = self._makers.get(name)
        return self.graph.root(name)

    def _take_out(self, name: str, instead: str) -> str:
        self.replaced[name] = instead
        return instead

    def _shape(self, name: str) -> tuple[int, ...]:
        return self.graph.type_of(name).shape

    def _is_state(self, name: str) -> bool:
        """Whether a value is an accumulator as it is, or scaled by a number."""
        maker = self._makers.get(name)
        if maker is not None and maker.kind == "mul":
            full = [n for n in maker.inputs if self._shape(n) == self._shape(name)]
            return len(full) == 1 and self._is_state(full[0])
        return self.graph.values[self.graph.root(name)].role is Role.STATE

    def _is_computed(self, name: str) -> bool:
        return self.graph.values[name].role not in _GIVEN


def without_replaced(graph: Graph, search: GradientSearch) -> Graph:
    """The graph without the ops that were taken out, and without the accumulators."""
    dropped = set(search.replaced)
    ops = [
        _reading(op, search)
        for op in graph.ops
        if dropped.isdisjoint(op.outputs) and not _writes(graph, op, search)
    ]
    values = {
        name: replace(value, storage=search.instead_of(value.storage))
        for name, value in graph.values.items()
    }
    # An optimiser may hand gradients to the host: they are the graph's outputs, too.
    gone = {n for op in graph.ops for n in op.outputs} - dropped
    gone -= {n for op in ops for n in op.outputs}
    outputs = [search.instead_of(name) for name in graph.outputs if name not in gone]
    return replace(
        graph, ops=tuple(ops), values=values, outputs=tuple(dict.fromkeys(outputs))
    )


def _writes(graph: Graph, op: Op, search: GradientSearch) -> bool:
    """Whether the op overwrites an accumulator: it resets it."""
    return any(
        graph.values[name].storage and graph.root(name) in search.accumulators
        for name in op.outputs
    )


def _reading(op: Op, search: GradientSearch) -> Op:
    inputs = tuple(map(search.instead_of, op.inputs))
    return op if inputs == op.inputs else replace(op, inputs=inputs)


def settle_phases(graph: Graph, early: Iterable[str]) -> Graph:
    """Move what the backward pass reads out of the update; it reads `early` too."""
    needed = set(early)
    ops: list[Op] = []
    for op in reversed(graph.ops):
        # Phases run one after the other: the backward pass cannot wait for the update.
        if op.phase is Phase.UPDATE and not needed.isdisjoint(op.outputs):
            op = replace(op, phase=Phase.BACKWARD)
        if op.phase is not Phase.UPDATE:
            needed.update(op.inputs)
        ops.append(op)
    return replace(graph, ops=tuple(reversed(ops)))
