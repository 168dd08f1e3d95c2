"""Occupancy: how full the tiles of a split are, as a few runs of a tile vector.

Splits rarely come out even: some tiles get a full share, the rest less. In: a Solution.
Out: tile vectors of at most three runs (full tiles, the rest at their mean, idle ones).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from popple.plan.builder import PlanBuilder
from popple.plan.codelets.sizes import PARTIALS_CODE_BYTES
from popple.plan.conv.search import Solution
from popple.program import Codelet, Thread, TileVector, VertexGroup
from popple.units import ceil_div

_STATE_BYTES = 16
_SOURCE = "graphcore/poplibs lib/poplin/ConvModel.cpp"


@dataclass(frozen=True)
class Occupancy:
    """`num_full` of `num_used` tiles have a full share, the rest `rest` of one.

    The tiles used begin at `first_tile` of the chip's `num_tiles`.
    """

    num_tiles: int
    num_used: int
    num_full: int
    rest: float
    first_tile: int = 0

    @staticmethod
    def even(num_tiles: int) -> Occupancy:
        """Every tile with a full share."""
        return Occupancy(num_tiles, num_tiles, num_tiles, 1.0)

    def vector(self, value: int) -> TileVector:
        """`value` for a full share, in proportion for less."""
        less = math.ceil(value * self.rest)
        runs = [(self.num_full, value), (self.num_used - self.num_full, less)]
        return self._on_chip(TileVector.of(runs))

    def spread(self, total: int, grain: int = 1) -> TileVector:
        """`total` dealt evenly over the tiles used."""
        spread = TileVector.spread(total, self.num_used, self.num_used, grain)
        return self._on_chip(spread)

    def spread_over(
        self, total: int, grain: int, num_tiles: int, is_last: bool
    ) -> TileVector:
        """`total` dealt evenly over the first or the last of the tiles used."""
        spread = TileVector.spread(total, num_tiles, self.num_used, grain)
        if is_last:
            spread = TileVector.of(spread.runs[::-1])
        return self._on_chip(spread)

    @property
    def ones(self) -> TileVector:
        """1 on every tile used."""
        return self._on_chip(TileVector.of([(self.num_used, 1)]))

    def _on_chip(self, vector: TileVector) -> TileVector:
        return vector.shifted(self.first_tile, self.num_tiles)


def find_occupancy(
    solution: Solution, num_tiles: int, first_tile: int = 0
) -> Occupancy:
    """How full the solution's tiles are, on a chip of `num_tiles`."""
    axes = _axes(solution)
    num_used = solution.split.num_used
    # A tile is full if its share is full in every direction.
    num_full = min(num_used, math.prod(size // share for size, share in axes))
    fullest = math.prod(share for _, share in axes)
    # What full tiles leave is shared evenly by the rest: a mean, as the exact shares
    # would need a run for each of them.
    left = math.prod(size for size, _ in axes) - num_full * fullest
    num_rest = num_used - num_full
    rest = left / (num_rest * fullest) if num_rest else 1.0
    rest = min(1.0, max(0.0, rest))
    return Occupancy(num_tiles, num_used, num_full, rest, first_tile)


def _axes(solution: Solution) -> list[tuple[int, int]]:
    """Size and largest share of everything that is split."""
    problem, method = solution.setting.form.problem, solution.setting.method
    split, serial = solution.split, solution.setting.serial
    sizes = [
        ceil_div(problem.groups, method.conv_group),
        serial.units_in(problem, method),
        serial.units_out(problem, method),
        problem.batch,
        *problem.out_field,
        *problem.kernel,
    ]
    shares = [split.groups_share, split.in_share, split.out_share]
    shares += [*split.field.shares, *split.kernel.shares]
    return list(zip(sizes, shares, strict=True))


def add_multi(
    builder: PlanBuilder,
    name: str,
    codelet: str,
    occupancy: Occupancy,
    cycles: int,
    reads: tuple[int, ...] = (),
) -> None:
    """Add a phase of one multi-worker vertex on every tile used."""
    # One vertex for all workers of a tile, as PopLibs has them around products.
    kind = Codelet(codelet, Thread.MULTI, PARTIALS_CODE_BYTES, _STATE_BYTES, _SOURCE)
    group = VertexGroup(kind, occupancy.ones, occupancy.vector(cycles))
    builder.compute(name, group, reads=reads)
