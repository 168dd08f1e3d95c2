"""Sorting on tiles. Assumed: a bitonic network, two comparisons' rate per exchange."""

from __future__ import annotations

from popple.graph import DType
from popple.plan.codelets.elementwise import BINARY
from popple.units import ceil_div


def num_sort_stages(row_elements: int) -> int:
    """Compare-and-swap passes of a bitonic network over one row: k (k + 1) / 2."""
    levels = max(1, (row_elements - 1).bit_length())
    return levels * (levels + 1) // 2


def sort_stage_cycles(dtype: DType, num_elements: int, num_workers: int) -> int:
    """One pass over a tile's elements: compare pairs, swap keys and indices."""
    rate = BINARY["less"].of(dtype)
    pairs = ceil_div(num_elements, 2)
    return 11 + num_workers * (29 + 2 * rate.worker_cycles(pairs, num_workers))
