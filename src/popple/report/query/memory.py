"""Memory summary of a report: totals, fullest tile, bytes by category, does it fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from popple.report.codec import IntArray, array_of
from popple.report.parts.memory import MemoryByCategory, TileMemory
from popple.report.read import Report

OVERLAPPED = "overlapped"


@dataclass(frozen=True)
class MemorySummary:
    """Memory of the whole machine and of its fullest tile.

    `headroom_bytes` is what the fullest tile has left; negative, by how much it
    is over. Bytes with gaps are what must fit.
    """

    capacity_bytes: int
    total_bytes: int
    total_with_gaps_bytes: int
    peak_tile_bytes: int
    peak_tile_with_gaps_bytes: int
    fullest_tile: int
    num_tiles_over: int
    always_live_bytes: int

    @property
    def headroom_bytes(self) -> int:
        """Free bytes on the fullest tile."""
        return self.capacity_bytes - self.peak_tile_with_gaps_bytes

    @property
    def fits(self) -> bool:
        """Whether no tile is over its capacity."""
        return self.num_tiles_over == 0


def memory_by_tile(report: Report) -> TileMemory:
    """Every way of counting memory, as an array over tiles."""
    return report.memory_by_tile


def summarize_memory(report: Report) -> MemorySummary:
    """Totals, the fullest tile, and how many tiles are over."""
    memory, capacity = report.memory_by_tile, report.target.bytes_per_tile
    with_gaps = memory.total_with_gaps_bytes
    # A tile may overflow below its capacity: code has to lie in the plain region.
    over = (with_gaps > capacity) | (memory.overflowed_with_gaps_bytes > 0)
    return MemorySummary(
        capacity_bytes=capacity,
        total_bytes=int(memory.total_bytes.sum()),
        total_with_gaps_bytes=int(with_gaps.sum()),
        peak_tile_bytes=int(memory.total_bytes.max(initial=0)),
        peak_tile_with_gaps_bytes=int(with_gaps.max(initial=0)),
        fullest_tile=int(with_gaps.argmax()) if with_gaps.size else 0,
        num_tiles_over=int(np.count_nonzero(over)),
        always_live_bytes=int(memory.always_live_bytes.sum()),
    )


def bytes_by_category(report: Report) -> dict[str, IntArray]:
    """Bytes on every tile by category; categories without any are left out.

    Bytes that variables of several times share belong to no single category and
    are counted as `overlapped`, so that the parts add up to the total.
    """
    total = report.memory_by_tile.total_bytes
    parts = {
        each.category: _own_bytes(each, total.size)
        for each in report.memory_by_category
    }
    if parts:
        shared = total - sum(parts.values(), start=np.zeros_like(total))
        parts[OVERLAPPED] = np.maximum(shared, 0)
    return {name: vector for name, vector in parts.items() if vector.any()}


def _own_bytes(category: MemoryByCategory, num_tiles: int) -> IntArray:
    total = np.zeros(num_tiles, np.int64)
    for runs in (category.interleaved, category.non_interleaved, category.overflowed):
        if runs:
            total += array_of(runs)
    return total
