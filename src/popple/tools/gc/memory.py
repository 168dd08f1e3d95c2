"""Memory of tiles as arrays: patterns written, read back and compared.

In: the memory of one chip and the faults that act on it. Out: the tiles that gave back
something else, with the first address of each. Tiles are taken some at a time: all of
a chip's memory at once is 900 MB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from popple.device.faults import Fault, FaultInjector
from popple.target import Chip

Words = NDArray[np.uint64]

_WORD_BYTES = 8
_TILES_AT_ONCE = 32
# Each bit is both 0 and 1, and differs from its neighbours both ways; the last pattern
# writes addresses, so that cells which answer for each other are found.
CONSTANTS = {
    "zeros": 0x0000000000000000,
    "ones": 0xFFFFFFFFFFFFFFFF,
    "alternate": 0x5555555555555555,
    "alternate inverted": 0xAAAAAAAAAAAAAAAA,
}
ADDRESSES = "addresses"


@dataclass(frozen=True)
class BadTile:
    """A tile whose memory gave back something else, and where it did first."""

    tile: int
    address: int
    pattern: str


def find_bad_tiles(
    chip: Chip, ipu: int, injector: FaultInjector
) -> tuple[BadTile, ...]:
    """Write and read back every pattern on every tile of one chip."""
    found: dict[int, BadTile] = {}
    for pattern in (*CONSTANTS, ADDRESSES):
        faults = injector.strike("memory", ipu)
        for bad in _test_pattern(chip, pattern, faults):
            found.setdefault(bad.tile, bad)
    return tuple(found[tile] for tile in sorted(found))


def _test_pattern(
    chip: Chip, pattern: str, faults: Sequence[Fault]
) -> Iterator[BadTile]:
    num_words = chip.tile_memory_bytes // _WORD_BYTES
    memory = np.empty((_TILES_AT_ONCE, num_words), np.uint64)
    for first in range(0, chip.num_tiles, _TILES_AT_ONCE):
        tiles = range(first, min(first + _TILES_AT_ONCE, chip.num_tiles))
        part = memory[: len(tiles)]
        wanted = _words_of(pattern, tiles, num_words)
        part[:] = wanted
        _damage(part, first, faults)
        for row, word in zip(*_find_first_wrong(part, wanted), strict=True):
            address = chip.tile_memory_base_address + word * _WORD_BYTES
            yield BadTile(first + row, address, pattern)


def _words_of(pattern: str, tiles: range, num_words: int) -> Words:
    """What each word of these tiles holds; one row of words may stand for all."""
    if pattern in CONSTANTS:
        return np.full((1, 1), CONSTANTS[pattern], np.uint64)
    numbers = np.arange(tiles.start, tiles.stop, dtype=np.uint64)[:, None]
    return (numbers << np.uint64(32)) + np.arange(num_words, dtype=np.uint64)


def _damage(memory: Words, first: int, faults: Sequence[Fault]) -> None:
    """Put the stuck bits of faulty cells into what was written."""
    cells: NDArray[np.uint8] = memory.view(np.uint8)  # pyright: ignore[reportUnknownMemberType]
    for fault in faults:
        if first <= fault.tile < first + len(memory):
            mask = 1 << fault.bit
            kept = int(cells[fault.tile - first, fault.address]) & ~mask
            cells[fault.tile - first, fault.address] = kept | (fault.stuck * mask)


def _find_first_wrong(memory: Words, wanted: Words) -> tuple[list[int], list[int]]:
    """The rows with a wrong word, and the place of the first one in each."""
    is_wrong = memory != wanted
    rows = np.flatnonzero(is_wrong.any(axis=1))
    return rows.tolist(), is_wrong[rows].argmax(axis=1).tolist()
