"""Dependencies between ops: reads, writes and off-chip stores that fix their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from popple.graph.graph import Graph, Op
from popple.graph.ops import get_op

_LOAD, _STORE = "remote_load", "remote_store"


def find_dependencies(graph: Graph, ops: Sequence[Op]) -> list[tuple[int, ...]]:
    """For every op the positions of those before it that it must not overtake.

    These are the makers of what it reads, the last writer of all memory it touches,
    and the readers of memory it overwrites; what comes from off the chip is loaded
    after all stores before it.
    """
    walk = _Walk(graph)
    return [walk.add(position, op) for position, op in enumerate(ops)]


class _Walk:
    """Who made, wrote and read what so far."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._maker: dict[str, int] = {}
        self._writer: dict[str, int] = {}
        self._readers: defaultdict[str, list[int]] = defaultdict(list)
        self._stores: list[int] = []

    def add(self, position: int, op: Op) -> tuple[int, ...]:
        """What an op depends on; the op is the latest from then on."""
        # Memory, not names: a view or an in-place result conflicts with its owner.
        roots = dict.fromkeys(map(self._graph.root, (*op.inputs, *op.outputs)))
        written = self._written(op)
        found = [self._maker[name] for name in op.inputs if name in self._maker]
        found += [self._writer[root] for root in roots if root in self._writer]
        found += [reader for root in written for reader in self._readers[root]]
        # Off-chip buffers are not values of the graph, so any load may read what was
        # stored.
        found += self._stores if op.kind in (_LOAD, _STORE) else ()
        self._note(position, op, roots, written)
        return tuple(dict.fromkeys(found))

    def _written(self, op: Op) -> dict[str, None]:
        """Owners of the memory that an op writes, none for a view."""
        is_view = get_op(op.kind).is_view
        return {} if is_view else dict.fromkeys(map(self._graph.root, op.outputs))

    def _note(
        self, position: int, op: Op, roots: dict[str, None], written: dict[str, None]
    ) -> None:
        self._maker.update(dict.fromkeys(op.outputs, position))
        for root in roots:
            if root in written:
                self._writer[root] = position
                # Later writers wait for this one, which has waited for the readers
                # before it.
                self._readers[root] = []
            else:
                self._readers[root].append(position)
        if op.kind == _STORE:  # stores follow each other, so the last stands for all
            self._stores = [position]
