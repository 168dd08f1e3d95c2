"""Keep synthetic data on the device: what does not travel between host and chip."""

from __future__ import annotations

from dataclasses import dataclass, replace

from popple.graph import Graph, Role, Value


@dataclass(frozen=True)
class MakeOnDevice:
    """Inputs of these names are made on the device, once; outputs of them stay there.

    Runs first: later passes and the planner then see no traffic to arrange.
    """

    names: frozenset[str]

    def apply(self, graph: Graph) -> Graph:
        """The graph without these inputs and outputs; all its ops stay."""
        values = {name: self._made(value) for name, value in graph.values.items()}
        outputs = tuple(name for name in graph.outputs if name not in self.names)
        return replace(graph, values=values, outputs=outputs)

    def _made(self, value: Value) -> Value:
        if value.role is not Role.INPUT or value.name not in self.names:
            return value
        # A constant: every chip that reads it has its own, for the whole run.
        return replace(value, role=Role.CONSTANT)
