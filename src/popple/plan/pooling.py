"""The search for the split of a pooling over tiles.

In: a PoolProblem, a Chip. Out: a PoolSplit, what the fullest tile computes and needs.
As in PopLibs popnn, the batch, the field and groups of channels are cut; the vertex
goes row by row, and over each row once for every position of the window. The cost is
its cycles and the exchange of what the windows of a tile read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from popple.graph import DType
from popple.plan.codelets.pool import pool_cycles
from popple.plan.codelets.rates import num_lanes
from popple.plan.conv.splits import Grid, make_grid, product_of
from popple.plan.conv.vertices import Ints, ceil_of
from popple.target import Chip
from popple.units import ceil_div

_MAX_SPLITS = 1500
# Channels that lie together, in vectors: those that popnn tries.
_VECTORS_PER_GROUP = (1, 2, 4)


@dataclass(frozen=True)
class PoolProblem:
    """A result of `batch` fields of `channels`, each element made from a window.

    `field` are the positions of the result. A gradient (`is_grad`) is a pooling, too:
    each element of the field gathers from the windows that cover it, and reads the
    gradient and, of a maximum, the forward result and itself.
    """

    batch: int
    channels: int
    field: tuple[int, ...]
    source: tuple[int, ...]
    kernel: tuple[int, ...]
    dtype: DType
    is_max: bool = True
    is_grad: bool = False

    @property
    def stride(self) -> tuple[int, ...]:
        """Positions between windows, as the sizes of field and source tell."""
        wide, narrow = self.source, self.field
        if self.is_grad:
            wide, narrow = narrow, wide
        pairs = zip(wide, narrow, strict=True)
        return tuple(max(1, round(large / small)) for large, small in pairs)

    @property
    def num_items(self) -> int:
        """Times that the vertex goes over a row: window positions that reach it."""
        if not self.is_grad:
            return math.prod(self.kernel)
        *outer, last = zip(self.kernel, self.stride, strict=True)
        return math.prod(ceil_div(k, step) for k, step in outer) * last[0]

    @property
    def num_sources(self) -> int:
        """Tensors of the source's size that are read."""
        return 2 if self.is_grad and self.is_max else 1


@dataclass(frozen=True)
class PoolSplit:
    """What the fullest of `num_tiles` tiles computes, and what it takes."""

    num_tiles: int
    channel_group: int
    positions: tuple[int, ...]
    num_groups: int
    cycles: int
    needed_bytes: int


@lru_cache(maxsize=1024)
def find_pool_split(problem: PoolProblem, chip: Chip) -> PoolSplit:
    """The split with the fewest cycles of compute and exchange."""
    lanes = num_lanes(problem.dtype)
    groups = [lanes * count for count in _VECTORS_PER_GROUP]
    splits = [_best_with(problem, group, chip) for group in groups]
    width = chip.exchange_bytes_per_cycle
    return min(splits, key=lambda s: s.cycles + s.needed_bytes // width)


def _best_with(problem: PoolProblem, channel_group: int, chip: Chip) -> PoolSplit:
    num_groups = ceil_div(problem.channels, channel_group)
    dims = (num_groups, problem.batch, *problem.field)
    grid = make_grid(dims, chip.num_tiles, _MAX_SPLITS)
    cycles = _cycles(problem, grid, channel_group, chip)
    needed = _needed_bytes(problem, grid, channel_group)
    best = int(np.argmin(cycles + needed // chip.exchange_bytes_per_cycle))
    groups, *positions = (int(share[best]) for share in grid.shares)
    return PoolSplit(
        int(grid.counts[best]),
        channel_group,
        tuple(positions),
        groups,
        int(cycles[best]),
        int(needed[best]),
    )


def _cycles(problem: PoolProblem, grid: Grid, channel_group: int, chip: Chip) -> Ints:
    groups, *outer, columns = grid.shares
    run = ceil_of(columns, problem.stride[-1]) if problem.is_grad else columns
    return pool_cycles(
        product_of(outer),
        run,
        groups,
        num_items=problem.num_items,
        vectors=channel_group // num_lanes(problem.dtype),
        is_max=problem.is_max,
        is_grad=problem.is_grad,
        num_workers=chip.num_workers,
    )


def _needed_bytes(problem: PoolProblem, grid: Grid, channel_group: int) -> Ints:
    """Bytes of what a tile's windows read."""
    groups, batch, *field = grid.shares
    elements = groups * channel_group * batch
    sources = elements * product_of(
        [_reach(problem, dim, share) for dim, share in enumerate(field)]
    )
    own = elements * product_of(field) if problem.num_sources > 1 else 0
    return (problem.num_sources * sources + own) * problem.dtype.num_bytes


def _reach(problem: PoolProblem, dim: int, share: Ints) -> Ints:
    """Source positions that so many result positions read."""
    stride, window = problem.stride[dim], problem.kernel[dim]
    if problem.is_grad:
        return np.minimum(ceil_of(share + window - 1, stride), problem.source[dim])
    return np.minimum((share - 1) * stride + window, problem.source[dim])
