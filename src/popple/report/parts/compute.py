"""Vertex types, vertex counts and compute sets of a report."""

from __future__ import annotations

from dataclasses import dataclass

from popple.quick import quick
from popple.report.codec import Runs, sum_of


@dataclass(frozen=True)
class VertexMemory:
    """Bytes of vertex state on every tile, by what they are for."""

    vertex_data_bytes: Runs
    copy_pointer_bytes: Runs
    descriptor_bytes: Runs
    edge_pointer_bytes: Runs
    padding_bytes: Runs


@dataclass(frozen=True)
class VertexType:
    """A codelet as loaded: its state size, its language, its code on tiles."""

    id: int
    name: str
    state_bytes: int = 0
    source: str | None = None
    code_bytes_by_tile: Runs = ()
    memory: VertexMemory | None = None


@quick
@dataclass(frozen=True, slots=True)
class VertexInstances:
    """How many vertices of one type a compute set has on every tile."""

    vertex_type_id: int
    count_by_tile: Runs

    @property
    def num_vertices(self) -> int:
        """Vertices of this type on all tiles."""
        return sum_of(self.count_by_tile)


@quick
@dataclass(frozen=True, slots=True)
class ComputeSet:
    """Vertices that run in one phase; cycle vectors are one a chip, over its tiles.

    `cycles_by_tile` is what a run took, `estimated_cycles_by_tile` what the
    compiler expected; either may be absent.
    """

    id: int
    name: str
    instances: tuple[VertexInstances, ...] = ()
    num_edges: int | None = None
    debug_id: int | None = None
    cycles_by_tile: tuple[Runs, ...] = ()
    estimated_cycles_by_tile: tuple[Runs, ...] = ()
    estimated_flops_by_tile: Runs = ()
    variable_ids: tuple[int, ...] = ()
    memory: VertexMemory | None = None

    @property
    def num_vertices(self) -> int:
        """Vertices of all types on all tiles."""
        return sum(group.num_vertices for group in self.instances)
