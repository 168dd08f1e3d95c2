"""Several replicas: gradients are summed over them before the update."""

from __future__ import annotations

from dataclasses import dataclass, replace

from popple.errors import UsageError
from popple.graph import Graph, Op, Value
from popple.place.update_weights import gradient_of, with_gradient


@dataclass(frozen=True)
class Replicate:
    """`count` copies of the graph on chips of their own.

    Reductions up to `merged_bytes` together are made at the same time.
    """

    count: int
    merged_bytes: int = 0

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UsageError(f"there must be a replica, not {self.count}.")

    def apply(self, graph: Graph) -> Graph:
        """The graph with a reduction over replicas before every update."""
        execution = replace(
            graph.execution, replicas=self.count, merged_bytes=self.merged_bytes
        )
        graph = replace(graph, execution=execution)
        if self.count == 1:
            return graph
        ops: list[Op] = []
        values: dict[str, Value] = {}  # by gradient: weights may share one
        for op in graph.ops:
            if gradient := gradient_of(op):
                if gradient not in values:
                    total, values[gradient] = self._reduce(graph, gradient, op)
                    ops.append(total)
                op = with_gradient(op, values[gradient].name)
            ops.append(op)
        return graph.with_ops(ops, values.values())

    def _reduce(self, graph: Graph, gradient: str, update: Op) -> tuple[Op, Value]:
        value = Value(f"{gradient}.reduced", graph.type_of(gradient), storage=gradient)
        op = update.beside(
            f"{gradient}.reduce",
            "all_reduce",
            (gradient,),
            (value.name,),
            {"replicas": self.count},
        )
        return op, value
