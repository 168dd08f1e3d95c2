"""Apply a configuration's options for kinds of ops, as notes on these ops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from popple.graph import NO_NOTES, Graph, Notes, Op, Phase, get_op

NotesByName = Mapping[str, Notes]
Place = tuple[Phase, int]
"""A phase of the step and a pipeline stage."""


@dataclass(frozen=True)
class ApplyOpOptions:
    """Notes on all ops of a family, on those in one stage, and on all ops of a kind.

    `by_stage` has notes by family for each phase and stage. The later of these beats
    the earlier; what is noted on an op itself beats all of them. Runs first: ops that
    other passes add are none that a configuration speaks of, and stages have the
    program's numbers.
    """

    by_family: NotesByName = field(default_factory=dict[str, Notes])
    by_stage: Mapping[Place, NotesByName] = field(
        default_factory=dict[Place, NotesByName]
    )
    by_kind: NotesByName = field(default_factory=dict[str, Notes])

    def apply(self, graph: Graph) -> Graph:
        """The graph with notes on its ops and on those of its functions."""
        return self._noted(graph).with_bodies(self._noted)

    def _noted(self, graph: Graph) -> Graph:
        return graph.with_ops(
            # This way round: what is noted on the op itself has the last word.
            replace(op, notes=notes.updated(op.notes))
            if (notes := self._notes_on(op)) != NO_NOTES
            else op
            for op in graph.ops
        )

    def _notes_on(self, op: Op) -> Notes:
        family = get_op(op.kind).family
        notes = self.by_family.get(family, NO_NOTES)
        in_stage = self.by_stage.get((op.phase, op.stage), {})
        notes = notes.updated(in_stage.get(family, NO_NOTES))
        return notes.updated(self.by_kind.get(op.kind, NO_NOTES))
