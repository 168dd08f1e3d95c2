"""Replicated tensor sharding: each replica updates its share of every weight.

Gradients are summed by a reduce-scatter, so that a replica gets the sum of its share
alone, laid out as that of the weight; the update works on the shares, with state for a
share only; an all-gather puts the weights together again.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from popple.graph import Graph, Op, TensorType, Value
from popple.place.update_weights import gradient_of


@dataclass(frozen=True)
class ShareUpdates:
    """Shares out the updates of weights of `min_elements` or more.

    Runs after `Replicate`, whose reductions it replaces.
    """

    min_elements: int = 8192

    def apply(self, graph: Graph) -> Graph:
        """The graph with shared updates, the same for one replica."""
        if graph.execution.replicas == 1:
            return graph
        return _Sharing(graph, self.min_elements).run()


class _Sharing:
    """The graph being rewritten."""

    def __init__(self, graph: Graph, min_elements: int) -> None:
        self._graph = graph
        self._replicas = graph.execution.replicas
        self._shared = {
            op.name: op
            for op in graph.ops
            if gradient_of(op)
            and graph.type_of(op.inputs[0]).num_elements >= min_elements
        }
        self._readers: defaultdict[str, list[Op]] = defaultdict(list)
        for op in self._shared.values():
            self._readers[op.inputs[1]].append(op)
        self._values: dict[str, Value] = {}

    def run(self) -> Graph:
        """The rewritten graph."""
        ops = [new for op in self._graph.ops for new in self._rewritten(op)]
        return self._graph.with_ops(ops, self._values.values())

    def _rewritten(self, op: Op) -> list[Op]:
        if op.kind == "all_reduce" and op.outputs[0] in self._readers:
            return self._scatter(op)
        return self._update(op) if op.name in self._shared else [op]

    def _scatter(self, op: Op) -> list[Op]:
        takes = [self._take(update) for update in self._readers[op.outputs[0]]]
        share = self._declare_share(op.outputs[0])
        inputs = (*op.inputs, *takes[0].outputs)
        return [
            *takes,
            replace(op, kind="reduce_scatter", inputs=inputs, outputs=(share,)),
        ]

    def _take(self, op: Op) -> Op:
        weight = op.inputs[0]
        share, attrs = self._declare_share(weight), {"replicas": self._replicas}
        return op.beside(f"{op.name}.take", "take_share", (weight,), (share,), attrs)

    def _update(self, op: Op) -> list[Op]:
        weight, gradient, *states = op.inputs
        share = _share_name(weight)
        updated, *results = op.outputs
        # State exists for the share alone: that is what sharing saves.
        for state in (*states, *results):
            value = self._graph.values[state]
            self._values[state] = replace(value, type=self._share_of(value.type))
        new_share = f"{share}.updated"
        kind = self._values[share].type
        self._values[new_share] = Value(new_share, kind, storage=share)
        attrs = {"replicas": self._replicas}
        inner = replace(
            op,
            inputs=(share, _share_name(gradient), *states),
            outputs=(new_share, *results),
        )
        gather = op.beside(
            f"{op.name}.gather", "all_gather", (new_share,), (updated,), attrs
        )
        return [inner, gather]

    def _declare_share(self, name: str) -> str:
        share = _share_name(name)
        self._values[share] = Value(share, self._share_of(self._graph.type_of(name)))
        return share

    def _share_of(self, kind: TensorType) -> TensorType:
        # Rounded up: shares are equal, the last one is padded.
        return TensorType(kind.dtype, (-(-kind.num_elements // self._replicas),))


def _share_name(name: str) -> str:
    return f"{name}.share"
