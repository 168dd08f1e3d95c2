"""Sum gradients over micro-batches before the update reads them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from popple.errors import UsageError
from popple.graph import DType, Graph, Op, Phase, Role, TensorType, Value
from popple.place.update_weights import gradient_of, with_gradient
from popple.quick import replaced


@dataclass(frozen=True)
class AccumulateGradients:
    """`count` micro-batches per update, summed in accumulators of type `dtype`.

    Without a type, an accumulator has that of its gradient.
    Runs after `UpdateWeights` and before `Replicate`: replicas reduce the sums.
    """

    count: int
    dtype: DType | None = DType.F32

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UsageError(f"an update needs a micro-batch, not {self.count}.")

    def apply(self, graph: Graph) -> Graph:
        """The graph with an accumulator, a sum and a reset for every gradient."""
        execution = replace(graph.execution, accumulation=self.count)
        graph = replace(graph, execution=execution)
        if self.count == 1:
            return graph
        steps = [op for op in graph.ops if op.phase is not Phase.UPDATE]
        updates = [op for op in graph.ops if op.phase is Phase.UPDATE]
        parts = _Parts(graph)
        sums: dict[str, _Accumulator] = {}  # weights may share a gradient
        for op in updates:
            if (gradient := gradient_of(op)) and gradient not in sums:
                found = parts.take(gradient, op)
                sums[gradient] = self._accumulator(graph, gradient, found, op.inputs[0])
        readers = [_redirected(op, sums) for op in updates]
        kept = [op for op in steps if op.name not in parts.undone]
        added = [op for each in sums.values() for op in each.sums]
        resets = [each.reset for each in sums.values()]
        values = [value for each in sums.values() for value in each.values]
        summed = _right_behind(kept, added)
        return graph.with_ops([*summed, *readers, *resets], values)

    def _accumulator(
        self, graph: Graph, gradient: str, parts: list[_Part], weight: str
    ) -> _Accumulator:
        own = graph.type_of(gradient)
        kind = TensorType(self.dtype or own.dtype, own.shape)
        owner = Value(f"{gradient}.accumulator", kind, Role.STATE)
        sums: list[Op] = []
        totals: list[Value] = []
        # Sums of a product's and a lookup's gradients lie as the table does, so that
        # the update moves nothing (graphcore/popart, willow/src/popx/op/
        # accumulatex.cpp, SparseAccumulateOpx::createInput).
        is_tied = len(parts) > 1 and any(op.kind == "scatter_add" for _, op in parts)
        for part, beside in parts:
            total = Value(f"{part}.accumulated", kind, storage=owner.name)
            read = (owner.name, part, weight) if is_tied else (owner.name, part)
            names = read, (total.name,)
            added = beside.beside(f"{part}.accumulate", "accumulate", *names)
            sums.append(replaced(added, phase=Phase.BACKWARD))
            totals.append(total)
        cleared = Value(f"{gradient}.cleared", kind, storage=owner.name)
        _, beside = parts[-1]
        reset = beside.beside(
            f"{owner.name}.clear", "clear", sums[-1].outputs, (cleared.name,)
        )
        reset = replaced(reset, phase=Phase.UPDATE)
        return _Accumulator((owner, *totals, cleared), tuple(sums), reset)


_Part = tuple[str, Op]
"""A gradient, or a part of one, and the op beside which it is added"""


class _Parts:
    """Gradients taken apart: a sum that only the accumulator reads is not made.

    Its parts go into the accumulator one by one, each where it is made, so that none
    of them waits or travels: a table of words that the first stage of a pipeline looks
    up and the last one multiplies with has a part of its gradient in either. The
    vendor's compiler does the same (graphcore/popart, patterns/tiedgatherpattern.cpp,
    transforms/inplaceaccumulategradpartialsintooptimizeraccumtensor.hpp).
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._makers = {name: op for op in graph.ops for name in op.outputs}
        self._readers = Counter(name for op in graph.ops for name in op.inputs)
        self._readers.update(graph.outputs)
        self.undone: set[str] = set()

    def take(self, gradient: str, reader: Op) -> list[_Part]:
        """The parts of a gradient; those that are made first come first."""
        maker = self._makers.get(gradient, reader)
        if not self._is_plain_sum(maker, gradient):
            return [(gradient, maker)]
        self.undone.add(maker.name)
        return [part for name in maker.inputs for part in self.take(name, maker)]

    def _is_plain_sum(self, op: Op, result: str) -> bool:
        """Whether an op adds results of others of its type and chip for one reader."""
        if op.kind != "add" or op.phase is not Phase.BACKWARD or len(op.inputs) != 2:
            return False
        sources = [self._makers.get(name) for name in op.inputs]
        kind = self._graph.type_of(result)
        return self._readers[result] == 1 and all(
            source is not None
            and source.chip == op.chip
            and self._graph.type_of(name) == kind
            for name, source in zip(op.inputs, sources, strict=True)
        )


@dataclass(frozen=True)
class _Accumulator:
    """One accumulator: its memory, what it holds after sums, after a reset."""

    values: tuple[Value, ...]
    sums: tuple[Op, ...]
    reset: Op


def _right_behind(steps: list[Op], sums: list[Op]) -> list[Op]:
    """Each sum behind the op that makes what it adds: no gradient waits."""
    waiting: dict[str, list[Op]] = {}
    for op in sums:
        waiting.setdefault(op.inputs[1], []).append(op)
    result: list[Op] = []
    for op in steps:
        result.append(op)
        for name in op.outputs:
            result += waiting.pop(name, [])
    # What no op makes, an input of the graph, is added at the end.
    return [*result, *(op for found in waiting.values() for op in found)]


def _redirected(op: Op, sums: dict[str, _Accumulator]) -> Op:
    gradient = gradient_of(op)
    return with_gradient(op, sums[gradient].sums[-1].outputs[0]) if gradient else op
