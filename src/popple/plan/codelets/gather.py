"""Indexed reads and writes: cycles of one worker that looks at its indices.

Source: PopLibs popops cycle estimators of MultiSlice and MultiUpdateAdd, which take
every index to be within the part of the table that lies on the tile.
"""

from __future__ import annotations

from popple.graph import DType
from popple.units import ceil_div

WORD_BYTES = 4
SUB_WORD_CYCLES = 20
"""Cycles per element of rows that are no whole words: read, merged, written."""


def multi_slice_cycles(num_indices: int, columns: int) -> int:
    """30 + indices (19 + 2 per 2 elements of the row)."""
    return 30 + num_indices * (19 + 2 * ceil_div(columns, 2))


def multi_update_cycles(num_indices: int, columns: int, dtype: DType) -> int:
    """17 or 18 + indices (11 or 12 + 3 per word after the first)."""
    is_half = dtype.num_bytes < WORD_BYTES
    words, rest = divmod(columns * dtype.num_bytes, WORD_BYTES)
    row = SUB_WORD_CYCLES * columns if rest else 3 * (words - 1)
    return 17 + is_half + num_indices * (11 + is_half + row)
