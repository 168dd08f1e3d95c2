"""Regrouping: another dimension of an operand becomes the innermost one.

As in graphcore/poplibs lib/popops/Rearrange.cpp: the operand is gathered in blocks of
its old by its new group, dealt to all tiles of the chip, each block is transposed where
it lies, and the blocks move on to the tiles that want them. In: type, old and new
group. Out: the blocks, or none if groups fill no 64-bit words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from popple.graph import TensorType
from popple.plan.conv.vertices import transpose_cycles
from popple.program import TileVector
from popple.target import Chip
from popple.units import ceil_div

_WORD_BYTES = 8


@dataclass(frozen=True)
class Blocks:
    """`num_elements` in blocks of `rows` by `columns`, dealt to the chip's tiles."""

    num_elements: int
    rows: int
    columns: int
    element_bytes: int
    chip: Chip

    @property
    def bytes_by_tile(self) -> TileVector:
        """The blocks on each tile."""
        tiles, size = self.chip.num_tiles, self.element_bytes
        grain = self.rows * self.columns * size
        return TileVector.spread(self.num_elements * size, tiles, tiles, grain)

    @property
    def cycles(self) -> int:
        """Cycles of the tile with most blocks."""
        blocks = ceil_div(self.num_elements, self.rows * self.columns)
        each = ceil_div(blocks, self.chip.num_tiles)
        size, workers = self.element_bytes, self.chip.num_workers
        return transpose_cycles(self.rows, self.columns, each, size, workers)


def find_blocks(
    tensor: TensorType, old_group: int, new_group: int, chip: Chip
) -> Blocks | None:
    """The blocks in which a tensor is transposed, made smaller to occupy all tiles."""
    size = tensor.dtype.num_bytes
    grain = _WORD_BYTES // size
    if size not in (2, 4) or old_group % grain or new_group % grain:
        return None
    num_blocks = ceil_div(tensor.num_elements, old_group * new_group)
    # A block of a word by a word is the least that the vertex transposes.
    smallest = grain * grain
    factor = _cut(num_blocks, old_group * new_group // smallest, chip.num_tiles)
    by_columns = math.gcd(factor, old_group // grain)
    by_rows = math.gcd(factor // by_columns, new_group // grain)
    rows, columns = new_group // by_rows, old_group // by_columns
    return Blocks(tensor.num_elements, rows, columns, size, chip)


def _cut(num_blocks: int, left: int, num_tiles: int) -> int:
    """How many times more blocks there may be, prime factor by prime factor."""
    factor = 1
    while left > 1:
        prime = next(p for p in range(2, left + 1) if left % p == 0)
        # More blocks than tiles keep no more tiles busy, but make messages smaller.
        if num_blocks * factor * prime > num_tiles:
            break
        factor, left = factor * prime, left // prime
    return factor
