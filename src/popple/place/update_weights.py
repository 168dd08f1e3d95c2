"""Append the optimiser: one update op for each weight that has a gradient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from popple.graph import DType, Graph, Op, Phase, Role, TensorType, Value, get_op
from popple.quick import replaced


@dataclass(frozen=True)
class UpdateWeights:
    """Adds `kind` ops with `num_states` state tensors for each weight.

    `gradients` maps weights to gradient values. The op of a weight stands where the
    weight is first used. Each state has the element type of the same place in
    `state_dtypes`: None is that of the weight, states beyond have single precision.
    """

    kind: str
    num_states: int
    gradients: Mapping[str, str]
    state_dtypes: tuple[DType | None, ...] = ()

    def apply(self, graph: Graph) -> Graph:
        """The graph with its update phase."""
        homes = _first_places(graph)
        values: list[Value] = []
        ops: list[Op] = []
        for weight, gradient in self.gradients.items():
            states = self._states(graph, weight)
            op, results = self._update(graph, weight, gradient, states)
            values += [*states, *results]
            ops.append(op.with_place(*homes.get(weight, (0, 0))))
        return graph.with_ops([*graph.ops, *ops], values)

    def _states(self, graph: Graph, weight: str) -> list[Value]:
        own = graph.type_of(weight)
        missing = self.num_states - len(self.state_dtypes)
        kinds = (*self.state_dtypes, *[DType.F32] * missing)[: self.num_states]
        return [
            Value(
                f"{weight}.state{index}",
                TensorType(kind or own.dtype, own.shape),
                Role.STATE,
            )
            for index, kind in enumerate(kinds)
        ]

    def _update(
        self, graph: Graph, weight: str, gradient: str, states: list[Value]
    ) -> tuple[Op, list[Value]]:
        owned = [graph.values[weight], *states]
        results = [
            Value(f"{value.name}.updated", value.type, storage=value.name)
            for value in owned
        ]
        op = Op(
            name=f"{weight}.update",
            kind=self.kind,
            inputs=(weight, gradient, *(state.name for state in states)),
            outputs=tuple(result.name for result in results),
            phase=Phase.UPDATE,
            module=weight.rpartition(".")[0],
        )
        return op, results


def gradient_of(op: Op) -> str:
    """The gradient that an op updates a weight with; empty for any other op."""
    # Accumulating is of the same family but of the backward phase, and clearing an
    # accumulator has one input only.
    is_update = op.phase is Phase.UPDATE and get_op(op.kind).family == "update"
    return op.inputs[1] if is_update and len(op.inputs) > 1 else ""


def with_gradient(op: Op, gradient: str) -> Op:
    """The update op reading another gradient."""
    return replaced(op, inputs=(op.inputs[0], gradient, *op.inputs[2:]))


def _first_places(graph: Graph) -> dict[str, tuple[int, int]]:
    """(chip, stage) of the first op that reads each weight."""
    places: dict[str, tuple[int, int]] = {}
    for op in graph.ops:
        for name in op.inputs:
            # By the owner: a weight may only ever be read through a view.
            places.setdefault(graph.root(name), (op.chip, op.stage))
    return places
