"""Bound the temporary memory of plans, for each chip as the program says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from popple.graph import Graph, Op, get_op

# The families whose plans have a bound (`PlanOptions.memory_proportion`).
_BOUNDED = frozenset({"matmul", "conv", "gather", "recurrent", "ctc"})


@dataclass(frozen=True)
class BoundMemory:
    """Notes the share of tile memory that plans on a chip may use.

    What is noted on an op itself goes before; chips that are not named keep the
    planner's own bound. Runs when every op has its chip. Functions stay as they are:
    one may run on several chips.
    """

    by_chip: Mapping[int, float] = field(default_factory=dict[int, float])

    def apply(self, graph: Graph) -> Graph:
        """The graph with the bounds of chips noted on ops."""
        return graph.with_ops(self._bounded(op) for op in graph.ops)

    def _bounded(self, op: Op) -> Op:
        share = self.by_chip.get(op.chip)
        is_said = share is None or op.notes.memory_proportion is not None
        if is_said or get_op(op.kind).family not in _BOUNDED:
            return op
        return replace(op, notes=replace(op.notes, memory_proportion=share))
