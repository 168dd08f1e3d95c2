"""Compute sets of a report and the vertices in them."""

from __future__ import annotations

from functools import cached_property

from popple import report as rp

__all__ = ["ComputeSet", "ComputeSetIndex", "VertexInstances", "VertexType", "by_tile"]


def by_tile(vectors: tuple[rp.Runs, ...]) -> list[int]:
    """One vector a chip as one list over all tiles."""
    return [value for runs in vectors for value in rp.array_of(runs).tolist()]


class VertexType:
    """A codelet: its name, the bytes of its state, the language of its source."""

    def __init__(self, record: rp.VertexType) -> None:
        self.name = record.name
        self.size = record.state_bytes
        self.source = record.source or ""

    def __repr__(self) -> str:
        return f"<pva.VertexType {self.name!r}>"


class VertexInstances:
    """The vertices of one type in a compute set."""

    def __init__(self, record: rp.VertexInstances, kind: VertexType) -> None:
        self._record = record
        self.type = kind

    @property
    def count(self) -> int:
        """How many there are on all tiles."""
        return self._record.num_vertices

    @property
    def countByTile(self) -> list[int]:
        """How many there are on every tile."""
        return by_tile((self._record.count_by_tile,))


class ComputeSet:
    """Vertices that run in one phase."""

    def __init__(
        self, record: rp.ComputeSet, vertex_types: dict[int, VertexType]
    ) -> None:
        self._record = record
        self._id = record.id
        self.name = record.name
        self.vertices = [
            VertexInstances(each, vertex_types[each.vertex_type_id])
            for each in record.instances
        ]

    @property
    def estimatedCyclesByTile(self) -> list[int]:
        """What the compiler expected; empty where the report does not tell."""
        return by_tile(self._record.estimated_cycles_by_tile)

    @property
    def cyclesByTile(self) -> list[int]:
        """What a run took; empty where the report does not tell."""
        return by_tile(self._record.cycles_by_tile)

    def __repr__(self) -> str:
        return f"<pva.ComputeSet {self.name!r}>"


class ComputeSetIndex:
    """All compute sets and vertex types of a report."""

    def __init__(self, report: rp.Report) -> None:
        self._report = report

    @cached_property
    def vertex_types(self) -> dict[int, VertexType]:
        """Vertex types by id."""
        return {record.id: VertexType(record) for record in self._report.vertex_types}

    @cached_property
    def records(self) -> dict[int, rp.ComputeSet]:
        """The records behind the views, by id."""
        return {record.id: record for record in self._report.compute_sets}

    @cached_property
    def compute_sets(self) -> dict[int, ComputeSet]:
        """Compute sets by id."""
        return {
            number: ComputeSet(record, self.vertex_types)
            for number, record in self.records.items()
        }
