"""Sum gradients over micro-batches before the update reads them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from popple.graph import DType, Graph, Op, Phase, Role, TensorType, Value


@dataclass(frozen=True)
class AccumulateGradients:
    """`count` micro-batches per update, summed in accumulators of type `dtype`."""

    count: int
    dtype: DType = DType.F32

    def apply(self, graph: Graph) -> Graph:
        """The graph with an accumulator, a sum and a reset for every gradient."""
        execution = replace(graph.execution, accumulation=self.count)
        if self.count == 1 or not graph.is_training:
            return replace(graph, execution=execution)
        places = {name: op for op in graph.ops for name in op.outputs}
        values: list[Value] = []
        sums: list[Op] = []
        updates: list[Op] = []
        for op in graph.ops:
            if op.phase is not Phase.UPDATE or len(op.inputs) < 2:
                continue
            gradient = op.inputs[1]
            made = self._accumulator(graph, gradient)
            values += made
            sums.append(_sum(gradient, made, places[gradient]))
            updates += [_reading(op, made[1].name), _reset(op, made)]
        rest = [op for op in graph.ops if op.phase is not Phase.UPDATE]
        result = graph.with_ops([*rest, *sums, *updates], values)
        return replace(result, execution=execution)

    def _accumulator(self, graph: Graph, gradient: str) -> list[Value]:
        """The accumulator, what it holds after a sum, and after a reset."""
        kind = TensorType(self.dtype, graph.type_of(gradient).shape)
        owner = Value(f"{gradient}.accumulator", kind, Role.STATE)
        return [
            owner,
            Value(f"{gradient}.accumulated", kind, storage=owner.name),
            Value(f"{gradient}.cleared", kind, storage=owner.name),
        ]


def _sum(gradient: str, made: list[Value], source: Op) -> Op:
    return Op(
        name=f"{gradient}.accumulate",
        kind="accumulate",
        inputs=(made[0].name, gradient),
        outputs=(made[1].name,),
        phase=Phase.BACKWARD,
        chip=source.chip,
        stage=source.stage,
        module=source.module,
        line=source.line,
    )


def _reading(op: Op, gradient: str) -> Op:
    return replace(op, inputs=(op.inputs[0], gradient, *op.inputs[2:]))


def _reset(op: Op, made: list[Value]) -> Op:
    return replace(
        op,
        name=f"{made[0].name}.clear",
        kind="clear",
        inputs=(made[1].name,),
        outputs=(made[2].name,),
        attrs={},
    )
