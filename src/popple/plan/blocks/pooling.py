"""The search for the split of a pooling over tiles.

In: a PoolProblem, a Chip. Out: a PoolSplit, what the fullest tile computes and needs.
As in PopLibs popnn/PoolPlan.cpp, the batch, the field and groups of channels are cut.
The cost is the vertex, the exchange of what the windows of a tile read, and as much
again if channels lie together in other groups than before. A plan with groups that
suit the ops around a pooling is taken if it costs less than a third more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from popple.graph import DType
from popple.plan.codelets.pool import PoolVertex
from popple.plan.codelets.rates import num_lanes
from popple.plan.conv.splits import Grid, make_grid, product_of
from popple.plan.conv.vertices import Ints, ceil_of
from popple.target import Chip
from popple.units import ceil_div

_MAX_SPLITS = 8000
_MAX_VECTORS = 8  # of channels that lie together


@dataclass(frozen=True)
class PoolProblem:
    """A result of `batch` fields of `channels`, each element made from a window.

    `field` are the positions of the result. A gradient (`is_grad`) is a pooling, too:
    each element of the field gathers from the windows that cover it, and reads the
    gradient and, of a maximum, the forward result and itself. `group` channels of the
    source lie together.
    """

    batch: int
    channels: int
    field: tuple[int, ...]
    source: tuple[int, ...]
    kernel: tuple[int, ...]
    dtype: DType
    is_max: bool = True
    is_grad: bool = False
    group: int = 1

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

    @property
    def is_whole(self) -> bool:
        """Whether one window is the whole field, which makes it a reduction."""
        return not self.is_grad and self.kernel == self.source

    @property
    def suitable_group(self) -> int:
        """Channels that should lie together for the ops around the pooling."""
        if self.dtype.num_bytes == 2:
            return 16
        return 8 if self.is_max else 4

    @property
    def forward(self) -> PoolProblem:
        """The pooling of which this is the gradient."""
        field, source = self.source, self.field
        return replace(self, field=field, source=source, is_grad=False)

    def with_group(self, group: int) -> PoolProblem:
        """The same with so many channels of the source together."""
        return replace(self, group=group)

    def vertex(self, channel_group: int) -> PoolVertex:
        """The vertex for groups of so many channels."""
        vectors = channel_group // num_lanes(self.dtype)
        step = self.stride[-1] if self.is_grad else 1
        items = self.num_items
        return PoolVertex(self.is_max, self.is_grad, items, vectors, vectors, step)

    def planned_vertex(self, channel_group: int) -> PoolVertex:
        """The vertex as PopLibs takes it to be when it plans.

        Every window position reaches every row, one vector is cleared.
        """
        items = math.prod(self.kernel)
        return replace(self.vertex(channel_group), num_items=items, cleared=1)


@dataclass(frozen=True)
class PoolSplit:
    """What the fullest of `num_tiles` tiles computes, and what it takes.

    `cost` is the estimate by which it was chosen.
    """

    num_tiles: int
    channel_group: int
    positions: tuple[int, ...]
    num_groups: int
    cycles: int
    needed_bytes: int
    cost: int


@lru_cache(maxsize=1024)
def find_pool_split(problem: PoolProblem, chip: Chip) -> PoolSplit:
    """The split of least cost, or one with suitable groups that costs little more."""
    lanes, wanted = num_lanes(problem.dtype), problem.suitable_group
    most = min(ceil_div(problem.group, lanes), ceil_div(problem.channels, lanes))
    vectors = range(1, max(1, min(most, _MAX_VECTORS)) + 1)
    problem = _with_batch_as_channels(problem)
    best = _cheapest(problem, lanes, [lanes * count for count in vectors], chip)
    if best.channel_group >= wanted or problem.channels < wanted:
        return best
    wide = _cheapest(problem, wanted, [wanted], chip)
    # Groups that suit spare the ops around the pooling a rearrangement, which the
    # search does not see.
    return wide if wide.cost < best.cost * 4 // 3 else best


def _with_batch_as_channels(problem: PoolProblem) -> PoolProblem:
    """Channels are independent, so forward a batch is only more of them."""
    if problem.is_grad:
        return problem
    channels = problem.batch * problem.channels
    return replace(problem, batch=1, channels=channels)


def _with_long_rows(problem: PoolProblem, group: int) -> PoolProblem:
    """All rows, and all groups of channels, as one row, if windows stay apart."""
    steps = zip(problem.source, problem.field, problem.stride, strict=True)
    is_apart = all(wide == narrow * step for wide, narrow, step in steps) and all(
        k <= step for k, step in zip(problem.kernel, problem.stride, strict=True)
    )
    if problem.is_grad or not is_apart:
        return problem
    groups = 1 if problem.channels % group else problem.channels // group
    columns = groups * math.prod(problem.field)
    ones = (1,) * (len(problem.field) - 1)
    return replace(
        problem,
        channels=problem.channels // groups,
        field=(*ones, columns),
        source=(*problem.stride[:-1], columns * problem.stride[-1]),
    )


def _cheapest(
    problem: PoolProblem, row_group: int, groups: list[int], chip: Chip
) -> PoolSplit:
    shaped = _with_long_rows(problem, row_group)
    splits = [_best_with(shaped, group, chip) for group in groups]
    return min(splits, key=lambda split: split.cost)


def _best_with(problem: PoolProblem, channel_group: int, chip: Chip) -> PoolSplit:
    num_groups = ceil_div(problem.channels, channel_group)
    dims = (num_groups, problem.batch, *problem.field)
    grid = make_grid(dims, chip.num_tiles, _MAX_SPLITS)
    cost = _planned_cost(problem, grid, channel_group, chip)
    best = int(np.argmin(cost))
    chosen = grid.take(np.array([best]))
    vertex = problem.vertex(channel_group)
    groups, *positions = (int(share[0]) for share in chosen.shares)
    return PoolSplit(
        int(grid.counts[best]),
        channel_group,
        tuple(positions),
        groups,
        int(_cycles(vertex, chosen.shares, chip.num_workers)[0]),
        int(_needed_bytes(problem, chosen, channel_group)[0]),
        int(cost[best]),
    )


def _planned_cost(
    problem: PoolProblem, grid: Grid, channel_group: int, chip: Chip
) -> Ints:
    """Vertex, exchange and, where groups change, rearrangement, as PopLibs plans.

    A gradient is taken to read as many positions as the result has, whatever the
    stride.
    """
    spread = problem
    if problem.is_grad:
        spread = replace(problem, source=problem.field)
    needed = _needed_bytes(spread, grid, channel_group)
    # Channels that change groups are copied once more after they arrived.
    moves = 1 if channel_group == problem.group else 2
    moved = moves * (needed // chip.exchange_bytes_per_cycle)
    return moved + _planned_cycles(problem, grid, channel_group, chip.num_workers)


def _planned_cycles(
    problem: PoolProblem, grid: Grid, channel_group: int, num_workers: int
) -> Ints:
    """A share that is one position smaller may take longer: workers share it worse."""
    vertex = problem.planned_vertex(channel_group)
    cycles = _cycles(vertex, grid.shares, num_workers)
    for shares in _smaller_shares(problem, grid):
        cycles = np.maximum(cycles, _cycles(vertex, shares, num_workers))
    return cycles


def _smaller_shares(problem: PoolProblem, grid: Grid) -> Iterator[tuple[Ints, ...]]:
    for dim, size in enumerate(problem.field, 2):
        share = grid.shares[dim]
        smaller = np.where(size % share, np.maximum(share - 1, 1), share)
        yield (*grid.shares[:dim], smaller, *grid.shares[dim + 1 :])


def _cycles(vertex: PoolVertex, shares: tuple[Ints, ...], num_workers: int) -> Ints:
    groups, *outer, columns = shares
    return vertex.cycles(product_of(outer), columns, groups, num_workers)


def _needed_bytes(problem: PoolProblem, grid: Grid, channel_group: int) -> Ints:
    """Bytes of what a tile's windows read."""
    groups, batch, *field = grid.shares
    elements = groups * channel_group * batch
    sources = elements * product_of(
        [_reach(problem, dim, share) for dim, share in enumerate(field)]
    )
    # The gradient of a maximum compares the forward input too, which has the size of
    # the result.
    own = elements * product_of(field) if problem.num_sources > 1 else 0
    return (problem.num_sources * sources + own) * problem.dtype.num_bytes


def _reach(problem: PoolProblem, dim: int, share: Ints) -> Ints:
    """Source positions that so many result positions read."""
    stride, window = problem.stride[dim], problem.kernel[dim]
    if problem.is_grad:
        return np.minimum(ceil_of(share + window - 1, stride), problem.source[dim])
    return np.minimum((share - 1) * stride + window, problem.source[dim])
