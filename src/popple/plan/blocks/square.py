"""Blocks: stacks of square matrices laid out block by block, and work on one block.

PopLibs keeps the elements of a block on neighbouring tiles (createCholeskyInput and
createTriangularSolveInputLHS in lib/poplin). Small triangles are worked on by a single
worker: the block goes to the tile with most of it and comes back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from popple.graph import TensorType
from popple.plan.builder import PlanBuilder
from popple.plan.layout import LINEAR, Layout, Named
from popple.plan.opplan import TileMapping
from popple.program import Codelet, TileVector, VertexGroup
from popple.target import Chip
from popple.units import ceil_div


@dataclass(frozen=True)
class BlockLayout:
    """`batch` matrices of `size` rows in square blocks of `block` rows.

    One block for all is no block: elements are then dealt out as widely as may be.
    An upper factor is stored by columns.
    """

    tensor: TensorType
    block: int
    chip: Chip
    has_columns: bool = False

    @property
    def batch(self) -> int:
        """Matrices of the stack."""
        rows, columns = self.tensor.shape[-2:]
        return self.tensor.num_elements // max(1, rows * columns)

    @property
    def tile_bytes(self) -> int:
        """Bytes of a full tile: at least one row of a block, in 64-bit grains."""
        grain = self.chip.data_path_bits // 8
        least = self.block * self.tensor.dtype.num_bytes
        even = ceil_div(self.tensor.num_bytes, self.chip.num_tiles)
        return ceil_div(max(least, even), grain) * grain

    @property
    def has_whole_words(self) -> bool:
        """Whether neighbours in a row lie together in words of 64 bits."""
        return not self.has_columns or self.tensor.dtype.num_bytes == 4

    @property
    def mapping(self) -> TileMapping:
        """Where the stack lies."""
        used = ceil_div(self.tensor.num_bytes, self.tile_bytes)
        grain = self.chip.data_path_bits // 8
        vector = TileVector.spread(
            self.tensor.num_bytes, used, self.chip.num_tiles, grain
        )
        # One block for all, or blocks of one element, are flat order.
        is_whole = self.block in (1, self.tensor.shape[-1])
        layout = LINEAR if is_whole else Layout(Named("blocks", (self.block,)))
        return TileMapping(vector, layout)

    def part(self, num_elements: int) -> TileMapping:
        """Some of each matrix, on as many tiles as hold it."""
        size = self.tensor.dtype.num_bytes
        num_bytes = self.batch * num_elements * size
        used = ceil_div(num_bytes, self.tile_bytes)
        vector = TileVector.spread(num_bytes, used, self.chip.num_tiles, size)
        return TileMapping(vector, Layout(Named("part of blocks", (self.block,))))


@dataclass(frozen=True)
class BlockWork:
    """One vertex for each matrix: takes `taken` elements of it, gives `given` back.

    In place it gives back what it has taken.
    """

    name: str
    codelet: Codelet
    cycles: int
    flops: int
    taken: int
    given: int
    is_in_place: bool = False


def add_block_work(builder: PlanBuilder, layout: BlockLayout, work: BlockWork) -> None:
    """Every matrix's block goes to one tile, is worked on and goes back."""
    size = layout.tensor.dtype.num_bytes
    owners = _owners(layout)
    taken, given = layout.part(work.taken), layout.part(work.given)
    whole = owners.scaled(work.taken * size)
    first = builder.position
    if taken.bytes_by_tile != whole:
        builder.move(f"{work.name}/gather", taken.bytes_by_tile, whole)
    flops = owners.presence().scaled(work.flops)
    cycles = owners.presence().scaled(work.cycles)
    group = VertexGroup(work.codelet, owners, cycles, flops, num_edges=3)
    builder.compute(work.name, group)
    results = owners.scaled(work.given * size)
    # A block that fills its tile is worked on where it is.
    if given.bytes_by_tile != results:
        builder.move(f"{work.name}/scatter", results, given.bytes_by_tile)
        # Rows that fill words are copied word by word, single halves are not.
        is_gathered = layout.has_whole_words
        builder.hold(f"{work.name}/block", whole, first, is_gathered=is_gathered)
        if not work.is_in_place:
            builder.hold(f"{work.name}/result", results, first)


def _owners(layout: BlockLayout) -> TileVector:
    """Vertices by tile: matrix i begins on tile i times the bytes of a matrix."""
    matrix_bytes = layout.tensor.num_bytes // layout.batch
    tiles = np.arange(layout.batch) * matrix_bytes // layout.tile_bytes
    counts = np.bincount(tiles, minlength=layout.chip.num_tiles)
    return TileVector.from_array(counts.astype(np.int64))
