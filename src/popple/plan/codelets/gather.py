"""Indexed reads and writes: cycles of one tile that looks for all its indices.

Source: PopLibs popops cycle estimators of MultiSlice and MultiUpdateAdd. One worker
looks through the indices; a row out of the tile's range costs a comparison.
"""

from __future__ import annotations

from popple.units import ceil_div

WORD_BYTES = 4
SUB_WORD_CYCLES = 20
"""Extra cycles per element of less than a word, which is read, merged, written."""


def multi_slice_cycles(
    num_found: int, num_missed: int, row_elements: int, num_workers: int
) -> int:
    """W (30 + found (19 + 2 per 2 elements) + 8 per miss)."""
    row = 19 + 2 * ceil_div(row_elements, 2)
    return num_workers * (30 + num_found * row + 8 * num_missed)


def multi_update_cycles(
    num_found: int,
    num_missed: int,
    row_elements: int,
    element_bytes: int,
    num_workers: int,
) -> int:
    """W (33 + found (12 + 3 per atom after the first) + 5 per miss)."""
    atoms = ceil_div(row_elements * element_bytes, WORD_BYTES)
    is_odd = row_elements * element_bytes % WORD_BYTES != 0
    row = 12 + 3 * max(0, atoms - 1) + SUB_WORD_CYCLES * is_odd
    return num_workers * (33 + num_found * row + 5 * num_missed)
