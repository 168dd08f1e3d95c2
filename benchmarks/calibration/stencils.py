"""Stencils in hand-written vertices: a program of steps, as its author laid it out.

A grid of cells is dealt to chips, tiles and workers; before every sweep each vertex
gets a copy of its cells with the rim of its neighbours around them. In: a `Grid`. Out:
the Program of one sweep, which Popple simulates as it does its own.

Vertices are C++, so their cycles are counted, not looked up: one instruction for each
load, operation and store, and those that keep the loop going.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from popple.program import (
    Codelet,
    ComputeSet,
    Exchange,
    Execute,
    GlobalExchange,
    Program,
    Sequence,
    Step,
    Thread,
    TileVector,
    VertexGroup,
)
from popple.target import Target

Array = NDArray[np.int64]

GATHER, PLACE, STENCIL = "gather", "place", "stencil"
"""Names of the compute steps: before and after the exchange, and the sweep itself."""
_LOADS, _OPERATIONS, _STORES = 9, 11, 1
"""Of nine cells: three weights, eight additions, three products, one result."""
_LOOP = 6
"""Three rows of input and one of output move on; a comparison and a branch."""
_ROW = 8
"""Once for every row of cells: those four pointers set anew, a counter, a comparison
and a branch, and the test whether the row has any cell."""
_VERTEX = 20
"""Instructions to unpack the state of a vertex and to set up its loops; estimate."""
_PIECE_CYCLES = 76
"""Tile cycles of a copy of a few bytes, one for each worker side by side: 12,744 of
them took 973,414 cycles in a profile that the author printed."""
_CHIP_GRIDS = {1: (1, 1), 4: (2, 2), 16: (4, 4)}
_MESSAGE_BYTES = 256


@dataclass(frozen=True)
class Cells:
    """What a cell is made of: bytes, and how many vectors of 8 bytes or less."""

    bytes: int
    num_vectors: int

    @property
    def instructions(self) -> int:
        """Of one cell, all its vectors in the body of one loop."""
        return self.num_vectors * (_LOADS + _OPERATIONS + _STORES) + _LOOP


CELLS = {"float": Cells(16, 4), "float2": Cells(16, 2), "half4": Cells(8, 1)}
"""Four channels: one at a time, two at a time in floats, four at a time in halves."""


@dataclass(frozen=True)
class Grid:
    """A grid of cells on chips; a tile has no fewer than `min_side` rows or columns."""

    height: int
    width: int
    cells: Cells
    num_chips: int = 1
    min_side: int = 1

    @property
    def chip_grid(self) -> tuple[int, int]:
        """Rows and columns of chips; the side that divides better has more."""
        if (known := _CHIP_GRIDS.get(self.num_chips)) is not None:
            return known
        many, few = (2, 1) if self.num_chips == 2 else (4, 2)
        rows_left = self.height % self.num_chips / self.height
        columns_left = self.width % self.num_chips / self.width
        return (many, few) if rows_left < columns_left else (few, many)


@dataclass(frozen=True)
class Blocks:
    """Cells of every tile of all chips, and what it gets from others by side.

    `near` and `far` count cells of the rims that come from tiles of the same chip and
    of other chips; `columns` counts those pieces of `near` that are one cell each.
    Every worker has a rim of its own, so neighbours share cells that each of them gets.
    """

    heights: Array
    widths: Array
    near: Array
    far: Array
    columns: Array
    flows: tuple[tuple[int, int, int], ...]


def sweep(grid: Grid, target: Target) -> Program:
    """One sweep over the grid: copies, the exchange of rims, the vertices."""
    num_tiles = target.chip.num_tiles
    blocks = _deal(grid, num_tiles, target.chip.num_workers)
    shares = _share_out(blocks.heights, blocks.widths, target.chip.num_workers)
    steps = [
        _gather(shares, grid, target),
        *_exchanges(blocks, grid),
        _place(blocks.columns + blocks.far, target),
        _stencil(shares, grid),
    ]
    return Program("sweep", grid.num_chips, num_tiles, {}, Sequence(tuple(steps)))


def _deal(grid: Grid, num_tiles: int, num_workers: int) -> Blocks:
    """The grid over chips, each chip's part over its tiles."""
    rows, columns = grid.chip_grid
    shape = (grid.num_chips, num_tiles)
    heights, widths, near, far, single = (np.zeros(shape, np.int64) for _ in range(5))
    flows: list[tuple[int, int, int]] = []
    for chip in range(grid.num_chips):
        row, column = divmod(chip, columns)
        tall = _shares(grid.height, rows)[row]
        wide = _shares(grid.width, columns)[column]
        # Which sides of the chip's part border on another chip's.
        sides = (row > 0, row < rows - 1, column > 0, column < columns - 1)
        part = _deal_to_tiles(tall, wide, num_tiles, grid.min_side, num_workers)
        used = len(part.heights)
        heights[chip, :used], widths[chip, :used] = part.heights, part.widths
        near[chip, :used], single[chip, :used] = part.near, part.columns
        strides = (-columns, columns, -1, 1)
        for is_shared, stride, cells in zip(
            sides, strides, part.outer_rims, strict=True
        ):
            if is_shared:
                far[chip, :used] += cells
                num_bytes = int(cells.sum()) * grid.cells.bytes
                flows.append((chip + stride, chip, num_bytes))
    return Blocks(
        heights.reshape(-1),
        widths.reshape(-1),
        near.reshape(-1),
        far.reshape(-1),
        single.reshape(-1),
        tuple(flows),
    )


@dataclass(frozen=True)
class _Part:
    """The tiles of one chip: a grid of `rows` by `columns`, in this order."""

    heights: Array
    widths: Array
    row: Array
    column: Array
    shares: _WorkerShares

    @property
    def _edges(self) -> tuple[Array, Array, Array, Array]:
        """Whether a tile lies at the upper, lower, left and right edge."""
        last_row, last_column = self.row.max(), self.column.max()
        return (
            self.row == 0,
            self.row == last_row,
            self.column == 0,
            self.column == last_column,
        )

    @property
    def _lengths(self) -> tuple[Array, Array]:
        """Cells of the rims above (or below) and left (or right) of a tile's workers.

        Two workers one above the other both get the cells beside where they meet.
        """
        shares = self.shares
        wide = self.widths + np.where(shares.is_by_rows, 0, 2 * shares.count)
        tall = self.heights + np.where(shares.is_by_rows, 2 * shares.count, 0)
        return wide, tall

    @property
    def near(self) -> Array:
        """Cells of the rim that lie on this chip."""
        upper, lower, _, _ = self._edges
        return self._lengths[0] * (2 - upper - lower) + self.columns

    @property
    def columns(self) -> Array:
        """Those left and right, each a message of its own."""
        _, _, left, right = self._edges
        return self._lengths[1] * (2 - left - right)

    @property
    def outer_rims(self) -> tuple[Array, ...]:
        """Cells above, below, left and right of the tiles at that edge."""
        wide, tall = self._lengths
        pairs = zip(self._edges, (wide, wide, tall, tall), strict=True)
        return tuple(edge * length for edge, length in pairs)


def _deal_to_tiles(
    height: int, width: int, num_tiles: int, min_side: int, num_workers: int
) -> _Part:
    """As many tiles as make their cells about square, wider and taller ones first."""
    most_columns = min(num_tiles, width // min_side)
    columns = min(most_columns, ceil(sqrt(num_tiles * width / height)))
    rows = min(num_tiles, height // min_side, num_tiles // columns)
    row, column = (each.reshape(-1) for each in np.indices((rows, columns)))
    heights = np.array(_shares(height, rows), np.int64)[row]
    widths = np.array(_shares(width, columns), np.int64)[column]
    shares = _share_out(heights, widths, num_workers)
    return _Part(heights, widths, row, column, shares)


def _shares(total: int, count: int) -> list[int]:
    """`total` in `count` shares, those with one more first."""
    whole, rest = divmod(total, count)
    return [whole + (index < rest) for index in range(count)]


def _exchanges(blocks: Blocks, grid: Grid) -> Iterator[Step]:
    """Rims between tiles of a chip, then between chips; what is sent is received."""
    near = _vector(blocks.near * grid.cells.bytes)
    rows = (blocks.near - blocks.columns) * grid.cells.bytes
    messages = _vector(blocks.columns + -(-rows // _MESSAGE_BYTES))
    yield Exchange("rims", near, near, messages)
    if blocks.flows:
        far = _vector(blocks.far * grid.cells.bytes)
        yield GlobalExchange("rims of other chips", blocks.flows, far, far)


@dataclass(frozen=True)
class _WorkerShares:
    """How the workers of each tile share its cells: `count` of them take `lines`.

    Lines are rows or, where these leave more over, columns of `across` cells; the
    first `num_longer` workers take one more.
    """

    is_by_rows: NDArray[np.bool_]
    count: Array
    lines: Array
    num_longer: Array
    across: Array


def _share_out(heights: Array, widths: Array, num_workers: int) -> _WorkerShares:
    is_by_rows = heights % num_workers * widths <= widths % num_workers * heights
    split = np.where(is_by_rows, heights, widths)
    count = np.minimum(split, num_workers)
    lines, num_longer = np.divmod(split, np.maximum(count, 1))
    return _WorkerShares(
        is_by_rows, count, lines, num_longer, np.where(is_by_rows, widths, heights)
    )


def _gather(shares: _WorkerShares, grid: Grid, target: Target) -> Step:
    """Each worker's cells with the lines of the workers beside it, row by row.

    Rows end up with gaps for the rim between them, so loads and stores take turns.
    """
    split = shares.count * shares.lines + shares.num_longer
    lines = split + 2 * np.maximum(shares.count - 1, 0)
    pieces = np.where(shares.is_by_rows, lines, shares.across * shares.count)
    num_bytes = lines * shares.across * grid.cells.bytes
    moving = 2 * num_bytes // target.chip.memcpy_bytes_per_cycle
    return _multi(GATHER, moving + _piece_cycles(pieces, target))


def _place(num_cells: Array, target: Target) -> Step:
    """Cells that came one by one are put where the vertices want them."""
    return _multi(PLACE, _piece_cycles(num_cells, target))


def _piece_cycles(num_pieces: Array, target: Target) -> Array:
    return -(-num_pieces // target.chip.num_workers) * _PIECE_CYCLES


def _multi(name: str, cycles: Array) -> Step:
    vector = _vector(cycles)
    codelet = Codelet(name, Thread.MULTI)
    group = VertexGroup(codelet, vector.presence(), vector)
    return Execute(ComputeSet(name, (group,)), op=name)


def _stencil(shares: _WorkerShares, grid: Grid) -> Step:
    """A vertex for every worker."""
    groups: list[VertexGroup] = []
    lines, longer = shares.lines, shares.num_longer
    for each, vertices in ((lines + 1, longer), (lines, shares.count - longer)):
        rows = np.where(shares.is_by_rows, each, shares.across)
        cells = each * shares.across
        cycles = cells * grid.cells.instructions + rows * _ROW + _VERTEX
        groups.append(
            VertexGroup(
                Codelet("Stencil", Thread.WORKER),
                _vector(vertices),
                _vector(cycles * (vertices > 0)),
            )
        )
    return Execute(ComputeSet(STENCIL, tuple(groups)), op=STENCIL)


def _vector(values: Array) -> TileVector:
    return TileVector.from_array(values)
