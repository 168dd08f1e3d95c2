"""Sorting. Source: PopLibs popops, CompareAndSwapAtDistanceKeyVal.

A bitonic network finds the `k` largest of a row: sequences of as many elements as the
next power of two are sorted, then merged in pairs of which one half is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

from popple.units import ceil_div

SUPERVISOR_CYCLES = 19
# Worker cycles before its loop, of the first pair and of every other pair.
_FLOAT_KEYS = (23 + 4 + 11, 8, 11)
_INTEGER_KEYS = (43 + 30 + 5, 17, 17)


def sort_passes(row_elements: int, num_kept: int) -> Iterator[int]:
    """Elements of a row that take part in each compare-and-swap pass."""
    levels, kept = (max(0, (n - 1).bit_length()) for n in (row_elements, num_kept))
    size = row_elements
    for level in range(levels):
        yield size
        # Sequences have the length that is kept: of each pair merged, half can go.
        if level >= kept:
            size = max(1 << kept, ceil_div(size, 2))
        for _ in range(min(level, kept)):
            yield size


def compare_cycles(num_pairs: int, is_float: bool, num_workers: int) -> int:
    """One pass over a tile's pairs of keys with their indices, all of them swapped."""
    start, first, other = _FLOAT_KEYS if is_float else _INTEGER_KEYS
    share = ceil_div(num_pairs, num_workers)
    return SUPERVISOR_CYCLES + num_workers * (start + first + other * (share - 1))
