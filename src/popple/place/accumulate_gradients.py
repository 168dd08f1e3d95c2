"""Sum gradients over micro-batches before the update reads them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from popple.errors import UsageError
from popple.graph import DType, Graph, Op, Phase, Role, TensorType, Value
from popple.place.update_weights import gradient_of, with_gradient


@dataclass(frozen=True)
class AccumulateGradients:
    """`count` micro-batches per update, summed in accumulators of type `dtype`.

    Runs after `UpdateWeights` and before `Replicate`: replicas reduce the sums.
    """

    count: int
    dtype: DType = DType.F32

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UsageError(f"an update needs a micro-batch, not {self.count}.")

    def apply(self, graph: Graph) -> Graph:
        """The graph with an accumulator, a sum and a reset for every gradient."""
        execution = replace(graph.execution, accumulation=self.count)
        graph = replace(graph, execution=execution)
        if self.count == 1:
            return graph
        makers = {name: op for op in graph.ops for name in op.outputs}
        steps = [op for op in graph.ops if op.phase is not Phase.UPDATE]
        updates = [op for op in graph.ops if op.phase is Phase.UPDATE]
        sums: dict[str, _Accumulator] = {}  # weights may share a gradient
        for op in updates:
            if (gradient := gradient_of(op)) and gradient not in sums:
                beside = makers.get(gradient, op)
                sums[gradient] = self._accumulator(graph, gradient, beside)
        readers = [_redirected(op, sums) for op in updates]
        added = [each.sum for each in sums.values()]
        resets = [each.reset for each in sums.values()]
        values = [value for each in sums.values() for value in each.values]
        return graph.with_ops([*steps, *added, *readers, *resets], values)

    def _accumulator(self, graph: Graph, gradient: str, beside: Op) -> _Accumulator:
        kind = TensorType(self.dtype, graph.type_of(gradient).shape)
        owner = Value(f"{gradient}.accumulator", kind, Role.STATE)
        total = Value(f"{gradient}.accumulated", kind, storage=owner.name)
        cleared = Value(f"{gradient}.cleared", kind, storage=owner.name)
        added = beside.beside(
            f"{gradient}.accumulate",
            "accumulate",
            (owner.name, gradient),
            (total.name,),
        )
        reset = beside.beside(
            f"{owner.name}.clear", "clear", (total.name,), (cleared.name,)
        )
        return _Accumulator(
            values=(owner, total, cleared),
            sum=replace(added, phase=Phase.BACKWARD),
            reset=replace(reset, phase=Phase.UPDATE),
        )


@dataclass(frozen=True)
class _Accumulator:
    """One accumulator: its memory, what it holds after a sum, after a reset."""

    values: tuple[Value, Value, Value]
    sum: Op
    reset: Op


def _redirected(op: Op, sums: dict[str, _Accumulator]) -> Op:
    gradient = gradient_of(op)
    return with_gradient(op, sums[gradient].sum.outputs[0]) if gradient else op
