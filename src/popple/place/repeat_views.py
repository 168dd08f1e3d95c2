"""Views across pipeline stages: taken anew where they are read.

A view owns no memory, so what travels to another stage is the value it looks at. Only
a view of a part of an activation travels itself: the rest would travel for nothing.
"""

from __future__ import annotations

from dataclasses import replace

from popple.graph import Graph, Op, Phase, Role, Value, get_op
from popple.place.shard import with_inputs

_COMPUTED = (Role.ACTIVATION, Role.INPUT)


def repeat_views(graph: Graph) -> Graph:
    """Take views again in every stage that reads them and did not make them."""
    return _Views(graph).run()


class _Views:
    """The graph being rewritten, and the views taken again so far."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._makers = {name: op for op in graph.ops for name in op.outputs}
        self._taken: dict[tuple[str, int], str] = {}
        self._values: dict[str, Value] = {}
        self._ops: list[Op] = []

    def run(self) -> Graph:
        """The rewritten graph."""
        for op in self._graph.ops:
            renamed = {n: r for n in op.inputs if (r := self._take(n, op)) != n}
            moved, shared = with_inputs(self._graph, op, renamed)
            self._values |= shared
            self._ops.append(moved)
        return self._graph.with_ops(self._ops, self._values.values())

    def _take(self, name: str, reader: Op) -> str:
        """Name under which the reader finds the view in its own stage."""
        view = self._makers.get(name)
        if view is None or not self._is_repeated(view, reader):
            return name
        key = (name, reader.stage)
        if key not in self._taken:
            self._taken[key] = self._repeat(name, view, reader)
        return self._taken[key]

    def _is_repeated(self, view: Op, reader: Op) -> bool:
        # The update belongs to no stage: what it reads is copied to it (`pipeline.py`).
        if reader.phase is Phase.UPDATE or view.stage == reader.stage:
            return False
        return get_op(view.kind).is_view and not self._is_part(view)

    def _is_part(self, view: Op) -> bool:
        """Whether an activation is larger than what this view shows of it."""
        graph, source = self._graph, view.inputs[0]
        shown = graph.type_of(view.outputs[0]).num_elements
        is_smaller = shown < graph.type_of(source).num_elements
        return is_smaller and graph.values[graph.root(source)].role in _COMPUTED

    def _repeat(self, name: str, view: Op, reader: Op) -> str:
        base = self._take(view.inputs[0], reader)
        again = f"{name}.at{reader.stage}"
        self._values[again] = Value(again, self._graph.type_of(name), storage=base)
        self._ops.append(
            replace(
                view,
                name=again,
                inputs=(base,),
                outputs=(again,),
                phase=reader.phase,
                chip=reader.chip,
                stage=reader.stage,
            )
        )
        return again
