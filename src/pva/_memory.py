"""Memory of tiles: in total, by category, by vertex type."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from popple import report as rp
from pva._compute import ComputeSetIndex, VertexType

__all__ = ["MemoryIndex", "Tile"]

_REGIONS = ("interleaved", "non_interleaved", "overflowed")


class MemoryBytes(NamedTuple):
    """Bytes of a tile, with and without the gaps between variables."""

    includingGaps: int
    excludingGaps: int


class Overlap(NamedTuple):
    """Bytes of a category that are its own, and that it shares with others."""

    nonOverlapped: int
    overlapped: int


class CategoryMemory(NamedTuple):
    """Bytes of a category on a tile, by region of memory."""

    interleaved: Overlap
    nonInterleaved: Overlap
    overflowed: Overlap

    @property
    def total(self) -> int:
        """Bytes in all regions, shared ones too."""
        return sum(sum(region) for region in self)


class Categories:
    """The categories of memory on one tile, as attributes: `category.vertexCode`."""

    def __init__(self, index: MemoryIndex, tile: int) -> None:
        self._index = index
        self._tile = tile

    def __getattr__(self, name: str) -> CategoryMemory:
        columns = self._index.categories.get(name)
        if columns is None:
            known = ", ".join(self._index.categories)
            raise AttributeError(f"no category {name!r}. Known names: {known}.")
        cells = [int(column[self._tile]) for column in columns]
        return CategoryMemory(*map(Overlap, cells[::2], cells[1::2]))

    def __dir__(self) -> list[str]:
        return list(self._index.categories)


class VertexMemory(NamedTuple):
    """What the vertices of one type take on a tile, by what it is for."""

    type: VertexType
    codeBytes: int
    vertexDataBytes: int
    copyPtrBytes: int
    descriptorBytes: int
    edgePtrBytes: int
    paddingBytes: int


class TileMemory:
    """Memory of one tile."""

    def __init__(self, index: MemoryIndex, tile: int) -> None:
        self._index = index
        self._tile = tile
        self.category = Categories(index, tile)

    @property
    def total(self) -> MemoryBytes:
        """All regions."""
        return self._bytes("total")

    @property
    def interleaved(self) -> MemoryBytes:
        """The region that is read two words at a time."""
        return self._bytes("interleaved")

    @property
    def nonInterleaved(self) -> MemoryBytes:
        """The region that also holds code."""
        return self._bytes("non_interleaved")

    @property
    def overflowed(self) -> MemoryBytes:
        """What does not fit."""
        return self._bytes("overflowed")

    @property
    def alwaysLiveBytes(self) -> int:
        """What is needed all the time."""
        return self._column("always_live_bytes")

    @property
    def notAlwaysLiveBytes(self) -> int:
        """The most that is needed at a time besides."""
        return self._column("transient_peak_bytes")

    @property
    def vertices(self) -> list[VertexMemory]:
        """The vertex types with code or state on the tile."""
        rows = self._index.vertex_bytes.items()
        found = [
            (kind, [int(c[self._tile]) for c in columns]) for kind, columns in rows
        ]
        return [VertexMemory(kind, *cells) for kind, cells in found if any(cells)]

    def _bytes(self, region: str) -> MemoryBytes:
        with_gaps = self._column(f"{region}_with_gaps_bytes")
        return MemoryBytes(with_gaps, self._column(f"{region}_bytes"))

    def _column(self, name: str) -> int:
        return int(getattr(self._index.report.memory_by_tile, name)[self._tile])


class Tile:
    """One tile of the machine."""

    def __init__(self, index: MemoryIndex, number: int) -> None:
        self.id = number
        self.memory = TileMemory(index, number)


class MemoryIndex:
    """The vectors over tiles that views of tiles look into, decoded once."""

    def __init__(self, report: rp.Report, compute: ComputeSetIndex) -> None:
        self.report = report
        self._compute = compute

    @cached_property
    def tiles(self) -> list[Tile]:
        """Every tile of the machine."""
        return [Tile(self, number) for number in range(self.report.target.num_tiles)]

    @cached_property
    def categories(self) -> dict[str, list[Any]]:
        """Six vectors a category: own and shared bytes of each region."""
        stored = {each.category: each for each in self.report.memory_by_category}
        names = [each.name for each in self.report.categories]
        return {
            name: [
                self._vector(getattr(stored.get(name), f"{region}{ending}", ()))
                for region in _REGIONS
                for ending in ("", "_overlapped")
            ]
            for name in names
        }

    @cached_property
    def vertex_bytes(self) -> dict[VertexType, list[Any]]:
        """Six vectors a vertex type, in the order of `VertexMemory`."""
        return {
            self._compute.vertex_types[record.id]: [
                self._vector(runs) for runs in _vertex_vectors(record)
            ]
            for record in self.report.vertex_types
        }

    def _vector(self, runs: rp.Runs) -> Any:
        return rp.array_of(runs or ((self.report.target.num_tiles, 0),))


def _vertex_vectors(record: rp.VertexType) -> list[rp.Runs]:
    memory = record.memory
    parts: list[rp.Runs] = [()] * 5
    if memory is not None:
        parts = [
            memory.vertex_data_bytes,
            memory.copy_pointer_bytes,
            memory.descriptor_bytes,
            memory.edge_pointer_bytes,
            memory.padding_bytes,
        ]
    return [record.code_bytes_by_tile, *parts]
