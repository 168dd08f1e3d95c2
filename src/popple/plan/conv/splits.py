"""Splits: the ways to cut a problem over tiles, as arrays over all candidates.

In: a problem in some form, a method's groups, the number of tiles and of serial parts.
Out: `Candidates`, one entry for each split worth looking at. More tiles never cost
more along the field (nothing is summed over it), so the field takes whatever tiles the
other splits leave: that makes the search space small whatever the chip's size.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from popple.plan.conv.methods import Method
from popple.plan.conv.problem import ConvProblem
from popple.plan.conv.vertices import Ints, TileWork, ceil_of
from popple.units import ceil_div

_MAX_CANDIDATES = 3000
_MAX_FIELD_OPTIONS = 1500
_MAX_KERNEL_OPTIONS = 6


@dataclass(frozen=True)
class Serial:
    """Parts computed one after the other, along output and input channels.

    Parts of output channels share their inputs. With `keeps_inputs` those are brought
    to the tiles once, before the first part, and stay until the last.
    """

    out_parts: int = 1
    in_parts: int = 1
    keeps_inputs: bool = False

    @property
    def count(self) -> int:
        """Times the body of the loop runs."""
        return self.out_parts * self.in_parts

    @property
    def times_inputs(self) -> int:
        """Times that inputs are brought to the tiles."""
        return 1 if self.keeps_inputs else self.count

    def units_in(self, problem: ConvProblem, method: Method) -> int:
        """Groups of input channels in one part."""
        channels = ceil_div(problem.in_channels, self.in_parts)
        return ceil_div(channels, method.in_group)

    def units_out(self, problem: ConvProblem, method: Method) -> int:
        """Groups of output channels in one part."""
        channels = ceil_div(problem.out_channels, self.out_parts)
        return ceil_div(channels, method.out_group)


@dataclass(frozen=True)
class Grid:
    """Splits of several dimensions together: shares by dimension, and tiles used."""

    shares: tuple[Ints, ...]
    counts: Ints

    def take(self, index: Ints) -> Grid:
        """The options at `index`."""
        return Grid(tuple(s[index] for s in self.shares), self.counts[index])

    def at(self, index: int) -> Cut:
        """The option at `index`."""
        shares = tuple(int(share[index]) for share in self.shares)
        return Cut(shares, int(self.counts[index]))

    @property
    def size(self) -> Ints:
        """Positions in one share."""
        return product_of(self.shares)


@dataclass(frozen=True)
class Cut:
    """One split of several dimensions: the shares, and the tiles it uses."""

    shares: tuple[int, ...]
    count: int

    def as_grid(self) -> Grid:
        """The same as the one option of a grid."""
        shares = tuple(np.array([share]) for share in self.shares)
        return Grid(shares, np.array([self.count]))


class Parts(NamedTuple):
    """Parts of the groups, the input channels and the output channels."""

    groups: Ints
    ins: Ints
    outs: Ints


@dataclass(frozen=True)
class Split:
    """One split and what it gives the fullest tile to do, as `Candidates` have many."""

    groups_split: int
    in_split: int
    out_split: int
    field: Cut
    kernel: Cut
    groups_share: int
    in_share: int
    out_share: int
    inputs: int
    weights: int
    partials: int

    @property
    def num_used(self) -> int:
        """Tiles that have something to do."""
        channels = self.groups_split * self.in_split * self.out_split
        return channels * self.field.count * self.kernel.count

    @property
    def num_summed(self) -> int:
        """Tiles whose partials make one output."""
        return self.in_split * self.kernel.count


@dataclass(frozen=True)
class Candidates:
    """Splits and what each gives the fullest tile to do.

    Shares of groups and channels count the method's groups; `inputs`, `weights` and
    `partials` are elements on that tile, group padding included.
    """

    groups_split: Ints
    in_split: Ints
    out_split: Ints
    field: Grid
    kernel: Grid
    groups_share: Ints
    in_share: Ints
    out_share: Ints
    inputs: Ints
    weights: Ints
    partials: Ints
    work: TileWork

    def at(self, index: int) -> Split:
        """The candidate at `index`."""
        return Split(
            groups_split=int(self.groups_split[index]),
            in_split=int(self.in_split[index]),
            out_split=int(self.out_split[index]),
            field=self.field.at(index),
            kernel=self.kernel.at(index),
            groups_share=int(self.groups_share[index]),
            in_share=int(self.in_share[index]),
            out_share=int(self.out_share[index]),
            inputs=int(self.inputs[index]),
            weights=int(self.weights[index]),
            partials=int(self.partials[index]),
        )

    @property
    def num_used(self) -> Ints:
        """Tiles that have something to do."""
        channels = self.groups_split * self.in_split * self.out_split
        return channels * self.field.counts * self.kernel.counts

    @property
    def num_summed(self) -> Ints:
        """Tiles whose partials make one output."""
        return self.in_split * self.kernel.counts


def product_of(factors: Sequence[Ints]) -> Ints:
    """Entry by entry the product of arrays."""
    return reduce(operator.mul, factors)


def distinct_splits(size: int, limit: int) -> Ints:
    """Numbers of parts up to `limit` that no smaller number equals in largest part.

    There are about two square roots of `size` of them: few parts, or parts of few.
    """
    few = np.arange(1, math.isqrt(size) + 2, dtype=np.int64)
    # A largest share is either small itself or the quotient by a small number.
    parts = np.unique(ceil_of(size, np.concatenate((few, ceil_of(size, few)))))
    return parts[parts <= limit]


def thin(values: Ints, max_count: int) -> Ints:
    """At most `max_count` of sorted values, evenly by rank, the ends kept."""
    if len(values) <= max_count:
        return values
    ranks = np.linspace(0, len(values) - 1, max(max_count, 2), dtype=np.int64)
    return values[np.unique(ranks)]


def make_grid(dims: Sequence[int], limit: int, max_options: int) -> Grid:
    """Splits of all dimensions that use at most `limit` tiles together."""
    splits = [distinct_splits(dim, limit) for dim in dims]
    # Options multiply: each dimension is thinned to its root of what there may be.
    several = sum(len(s) > 1 for s in splits)
    if several > 1:
        each = max(2, int(max_options ** (1 / several)))
        splits = [thin(s, each) for s in splits]
    mesh = [m.ravel() for m in np.meshgrid(*splits, indexing="ij")]
    counts = product_of(mesh)
    kept = counts <= limit
    shares = tuple(ceil_of(dim, m[kept]) for dim, m in zip(dims, mesh, strict=True))
    return Grid(shares, counts[kept])


def best_by_tiles(grid: Grid, problem: ConvProblem) -> Grid:
    """For each number of tiles the best field split with at most as many.

    Best is least work and least input with its halo, each as a part of the whole.
    """
    batch, *field = grid.shares
    # A row costs a worker about as much as 7 more elements of it.
    work = product_of([batch, *field[:-1]]) * (7 + field[-1])
    halo = batch * _input_positions(problem, field, problem.kernel)
    score = work / work.max() + halo / halo.max()
    # By tiles, then by score: those that improve on all before them are left.
    order = np.lexsort((score, grid.counts))
    sorted_score = score[order]
    before = np.minimum.accumulate(np.concatenate(([math.inf], sorted_score[:-1])))
    return grid.take(order[sorted_score < before])


def _input_positions(
    problem: ConvProblem, field: Sequence[Ints], kernel: Sequence[Ints | int]
) -> Ints:
    """Field positions that an output block needs, its halo included."""
    total = np.ones_like(field[0])
    for d, (out, window) in enumerate(zip(field, kernel, strict=True)):
        span = (out - 1) * problem.stride[d] + (window - 1) * problem.dilation[d] + 1
        held = np.minimum(ceil_of(span, problem.upsampling[d]), problem.field[d])
        # A stride beyond the kernel leaves gaps that nobody needs.
        total = total * np.minimum(held, out * window)
    return total


def find_candidates(
    problem: ConvProblem, method: Method, num_tiles: int, serial: Serial
) -> Candidates:
    """All splits worth costing, with the shares they give a tile."""
    units_in = serial.units_in(problem, method)
    units_out = serial.units_out(problem, method)
    units_groups = ceil_div(problem.groups, method.conv_group)
    kernel = make_grid(problem.kernel, num_tiles, _MAX_KERNEL_OPTIONS)
    axes = _thin_axes(
        [
            distinct_splits(units_groups, num_tiles),
            np.arange(len(kernel.counts), dtype=np.int64),
            distinct_splits(units_in, num_tiles),
            distinct_splits(units_out, num_tiles),
        ]
    )
    mesh = [m.ravel() for m in np.meshgrid(*axes, indexing="ij")]
    # The kernel is one axis: the number of an option of its grid.
    used = mesh[0] * kernel.counts[mesh[1]] * mesh[2] * mesh[3]
    fits = used <= num_tiles
    groups, window, ins, outs = (m[fits] for m in mesh)
    field = _fill_field(problem, num_tiles, num_tiles // used[fits])
    shares = (
        ceil_of(units_groups, groups),
        ceil_of(units_in, ins),
        ceil_of(units_out, outs),
    )
    return make_candidates(
        problem, method, Parts(groups, ins, outs), shares, field, kernel.take(window)
    )


def _thin_axes(axes: list[Ints]) -> list[Ints]:
    """The axes, the longest thinned until their product is small enough."""
    while math.prod(map(len, axes)) > _MAX_CANDIDATES:
        # Short axes have few options that matter; the longest can spare some.
        longest = max(range(len(axes)), key=lambda i: len(axes[i]))
        axes[longest] = thin(axes[longest], max(2, len(axes[longest]) * 3 // 4))
    return axes


def _fill_field(problem: ConvProblem, num_tiles: int, left: Ints) -> Grid:
    dims = (problem.batch, *problem.out_field)
    grid = make_grid(dims, num_tiles, _MAX_FIELD_OPTIONS)
    best = best_by_tiles(grid, problem)
    # The best split with at most as many tiles as are left; one tile always is.
    return best.take(np.searchsorted(best.counts, left, side="right") - 1)


def make_candidates(
    problem: ConvProblem,
    method: Method,
    parts: Parts,
    shares: tuple[Ints, Ints, Ints],
    field: Grid,
    kernel: Grid,
) -> Candidates:
    """Candidates with these parts of groups, inputs and outputs, and their shares."""
    groups, ins, outs = shares
    batch, *dims = field.shares
    # What a tile has counts padded groups: vertices read and write whole ones.
    conv_groups = groups * method.conv_group
    in_channels = ins * method.in_group
    out_channels = outs * method.out_group
    positions = batch * _input_positions(problem, dims, kernel.shares)
    return Candidates(
        *parts,
        field=field,
        kernel=kernel,
        groups_share=groups,
        in_share=ins,
        out_share=outs,
        inputs=conv_groups * in_channels * positions,
        weights=conv_groups * in_channels * out_channels * kernel.size,
        partials=conv_groups * out_channels * field.size,
        work=_make_work(problem, shares, field, kernel),
    )


def work_of(problem: ConvProblem, split: Split) -> TileWork:
    """What a split gives the fullest tile to compute: one entry."""
    shares = (split.groups_share, split.in_share, split.out_share)
    groups, ins, outs = (np.array([share]) for share in shares)
    field, kernel = split.field.as_grid(), split.kernel.as_grid()
    return _make_work(problem, (groups, ins, outs), field, kernel)


def _active_positions(problem: ConvProblem, dims: Sequence[Ints]) -> list[Ints]:
    """Outputs of a share that one kernel element contributes to, by dimension."""
    steps = zip(problem.active_field, dims, problem.upsampling, strict=True)
    return [np.minimum(ceil_of(n, step), most) for most, n, step in steps]


def _make_work(
    problem: ConvProblem, shares: tuple[Ints, Ints, Ints], field: Grid, kernel: Grid
) -> TileWork:
    batch, *dims = field.shares
    active = _active_positions(problem, dims)
    columns = kernel.shares[-1]
    return TileWork(
        conv_groups=shares[0],
        rows=product_of([batch, *active[:-1]]),
        columns=active[-1],
        kernel_rows=product_of([np.ones_like(columns), *kernel.shares[:-1]]),
        kernel_columns=columns,
        in_groups=shares[1],
        out_groups=shares[2],
    )
