"""Memory of the lists that vertices of convolutions carry beside their state.

Which part of the field each worker computes is fixed when a program is compiled: for
every kernel position and worker a list of ranges. Groups of channels lie where they
lie, so there is a pointer to each. In: what a tile computes (`TileWork`). Out: bytes of
one vertex (graphcore/poplibs, lib/poplin/ConvVertices.cpp and codelets/).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from popple.plan.conv.vertices import Ints, TileWork, ceil_of
from popple.target import Chip

# Where a range begins in inputs and outputs and how long it is, 16 bit each.
_RANGE_BYTES = 6
# The same with the place in the kernel.
_RANGE_WITH_WEIGHTS_BYTES = 8
# Where a list of ranges lies and how many it has.
_LIST_BYTES = 4
# Columns of the kernel that SLIC units take at once.
_SLIC_COLUMNS = 4


@dataclass(frozen=True)
class Listing:
    """How a chip's vertices keep lists: by worker, with pointers of so many bytes."""

    num_workers: int
    pointer_bytes: int

    @staticmethod
    def of(chip: Chip) -> Listing:
        """The lists of a chip, whose whole memory a pointer has to reach."""
        # Pointers of 16 bit count words of 8 bytes.
        reached = 8 << 16
        is_near = chip.tile_memory_bytes <= reached
        return Listing(chip.num_workers, 2 if is_near else 4)

    def ranges(self, work: TileWork) -> Ints:
        """Parts of rows when all elements are dealt evenly to the workers."""
        # A bound between two workers that falls inside a row cuts it in two. There are
        # no more parts than elements, though bounds coincide if those are few.
        parts = work.rows
        for worker in range(1, self.num_workers):
            bound = worker * work.elements // self.num_workers
            parts = parts + (bound % work.columns != 0)
        return np.minimum(parts, work.elements)

    def pointers(self, work: TileWork) -> Ints:
        """Pointers to groups of inputs, of outputs and of weights for each pair."""
        ins, outs = work.in_groups, work.out_groups
        return self.pointer_bytes * work.conv_groups * (ins + outs + ins * outs)

    def by_position(self, work: TileWork, positions: Ints) -> Ints:
        """A list of ranges for every worker and position of the kernel."""
        lists = _LIST_BYTES * self.num_workers
        return positions * (lists + _RANGE_BYTES * self.ranges(work))


def no_lists(work: TileWork) -> Ints:
    """Vertices whose state is all they have."""
    return np.zeros_like(work.rows)


def amp_1x1_lists(work: TileWork, listing: Listing) -> Ints:
    """One range of elements for each worker, across rows."""
    ranges = np.full_like(work.rows, _RANGE_BYTES * listing.num_workers)
    return ranges + listing.pointers(work)


def positional_lists(work: TileWork, listing: Listing, kernel_height: int = 1) -> Ints:
    """Vertices that take one position of the kernel, or `kernel_height` rows, a run."""
    positions = ceil_of(work.kernel_rows, kernel_height) * work.kernel_columns
    return listing.by_position(work, positions) + listing.pointers(work)


def slic_lists(work: TileWork, listing: Listing) -> Ints:
    """Vertices that take four columns of the kernel at once, with weights of each."""
    positions = work.kernel_rows * ceil_of(work.kernel_columns, _SLIC_COLUMNS)
    pointers = listing.pointer_bytes * work.conv_groups * (2 + positions)
    return listing.by_position(work, positions) + pointers


def vmac_lists(work: TileWork, listing: Listing) -> Ints:
    """A list for each worker: every output element, by rows of the kernel."""
    ranges = _RANGE_WITH_WEIGHTS_BYTES * work.kernel_rows * work.elements
    return _LIST_BYTES * listing.num_workers + ranges + listing.pointers(work)
