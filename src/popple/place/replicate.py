"""Several replicas: gradients are summed over them before the update."""

from __future__ import annotations

from dataclasses import dataclass, replace

from popple.graph import Graph, Op, Phase, Value


@dataclass(frozen=True)
class Replicate:
    """`count` copies of the graph on chips of their own."""

    count: int

    def apply(self, graph: Graph) -> Graph:
        """The graph with a reduction over replicas before every update."""
        execution = replace(graph.execution, replicas=self.count)
        if self.count == 1 or not graph.is_training:
            return replace(graph, execution=execution)
        ops: list[Op] = []
        values: list[Value] = []
        for op in graph.ops:
            if op.phase is Phase.UPDATE and len(op.inputs) >= 2:
                total, value = self._reduce(graph, op)
                values.append(value)
                ops.append(total)
                op = replace(op, inputs=(op.inputs[0], value.name, *op.inputs[2:]))
            ops.append(op)
        return replace(graph.with_ops(ops, values), execution=execution)

    def _reduce(self, graph: Graph, update: Op) -> tuple[Op, Value]:
        gradient = update.inputs[1]
        value = Value(f"{gradient}.reduced", graph.type_of(gradient), storage=gradient)
        op = replace(
            update,
            name=f"{gradient}.reduce",
            kind="all_reduce",
            inputs=(gradient,),
            outputs=(value.name,),
            attrs={"replicas": self.count},
        )
        return op, value
