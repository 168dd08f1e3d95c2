"""What one tile does in a reduction: which vertices, in one compute phase or two.

In: the stretch of the source that a tile holds, seen as rows of columns. Out: for each
phase the number of worker vertices and the cycles of the longest. The rules are those
of PopLibs popops/reduction (dividePartials, connectReductions): columns are cut between
workers in grains; where workers are left over, rows are cut as well if the second phase
that adds the cuts up pays off; columns of several neighbours are reduced in two phases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from popple.graph import DType
from popple.plan.blocks.spans import Dims
from popple.plan.codelets.rates import num_lanes
from popple.plan.codelets.reduce import continuous_reduce_cycles, strided_reduce_cycles
from popple.units import ceil_div

VERTEX_CYCLES = 30
"""Cycles that PopLibs' estimate adds for a vertex when it weighs cutting rows."""
MIN_CYCLES_PER_CUT = 4
"""No cut of the rows takes fewer cycles; found by PopLibs' authors on ResNet."""


@dataclass(frozen=True)
class Stretch:
    """`groups` times `rows` rows of `columns` outputs of `inner` neighbours each."""

    inner: int
    columns: int
    rows: int
    groups: int = 1

    @property
    def num_outputs(self) -> int:
        """Partial results it leaves."""
        return self.columns * self.groups

    @property
    def num_elements(self) -> int:
        """Elements that are reduced."""
        return self.inner * self.columns * self.rows * self.groups


@dataclass(frozen=True)
class Arithmetic:
    """Types of data, partial sums and results, worker cycles by word, what it does.

    Sums run on the accumulators, which take two words at once; other operations
    (the largest, the product) do not.
    """

    source: DType
    partials: DType
    result: DType
    step_cycles: int = 1
    is_sum: bool = True

    def width(self, dtype: DType) -> int:
        """Elements that one instruction reduces."""
        return num_lanes(dtype) * (2 if self.is_sum else 1)


@dataclass(frozen=True)
class Phase:
    """Worker vertices of one compute phase on a tile, and cycles of the longest.

    `num_left` are the elements that a first phase leaves for the second.
    """

    num_vertices: int
    worker_cycles: int
    num_left: int = 0


def find_stretch(shape: Dims, kept: tuple[bool, ...], span: int) -> Stretch:
    """Rows and columns among `span` neighbours of a tensor.

    Example: 12 neighbours of a [4,3,2] tensor that keeps the middle dimension are 2
    rows of 3 columns of 2 neighbours.
    """
    runs = _runs(shape, kept, span)
    inner = runs.pop(0)[1] if runs and not runs[0][0] else 1
    columns = runs.pop(0)[1] if runs else 1
    rows, groups = 1, 1
    for is_kept, size in runs:
        rows, groups = (rows, groups * size) if is_kept else (rows * size, groups)
    return Stretch(inner, columns, rows, groups)


def _runs(shape: Dims, kept: tuple[bool, ...], span: int) -> list[tuple[bool, int]]:
    """What the stretch covers of kept and reduced dimensions in turn, inner first."""
    runs: list[tuple[bool, int]] = []
    size = 1
    for dim, is_kept in zip(reversed(shape), reversed(kept), strict=True):
        if span <= size:
            break
        covered = min(dim, ceil_div(span, size))
        size *= dim
        if runs and runs[-1][0] == is_kept:
            runs[-1] = (is_kept, runs[-1][1] * covered)
        elif covered > 1:
            runs.append((is_kept, covered))
    return runs


@lru_cache(maxsize=4096)
def tile_phases(
    stretch: Stretch, arithmetic: Arithmetic, num_workers: int
) -> tuple[Phase, ...]:
    """The compute phases that reduce a stretch on its tile."""
    if stretch.columns == 1 and stretch.groups == 1:
        return _scalar_phases(stretch, arithmetic, num_workers)
    # Outputs side by side: whole rows are added, a vector at a time.
    if stretch.inner == 1:
        return _column_phases(stretch, arithmetic, num_workers)
    if stretch.rows == 1:
        outputs = ceil_div(stretch.num_outputs, num_workers)
        count = ceil_div(stretch.num_outputs, outputs)
        return (_neighbours(count, outputs, stretch.inner, arithmetic),)
    return _mixed_phases(stretch, arithmetic, num_workers)


def tile_cycles(stretch: Stretch, arithmetic: Arithmetic, num_workers: int) -> int:
    """Tile cycles of all compute phases that reduce a stretch."""
    return sum(
        ceil_div(phase.num_vertices, num_workers) * num_workers * phase.worker_cycles
        for phase in tile_phases(stretch, arithmetic, num_workers)
    )


def _scalar_phases(
    stretch: Stretch, arithmetic: Arithmetic, num_workers: int
) -> tuple[Phase, ...]:
    """Everything to one output: a part for each worker, then the parts."""
    size = stretch.inner * stretch.rows
    cuts = _row_cuts(size, size, 1, arithmetic, num_workers)
    first = _neighbours(cuts, 1, ceil_div(size, cuts), arithmetic)
    if cuts == 1:
        return (first,)
    return _before(first, cuts), _neighbours(1, 1, cuts, _second(arithmetic))


def _column_phases(
    stretch: Stretch, arithmetic: Arithmetic, num_workers: int
) -> tuple[Phase, ...]:
    """Rows of columns: columns are cut in grains, rows where workers are left."""
    grain = arithmetic.width(arithmetic.source)
    grains = ceil_div(stretch.columns, grain)
    share = ceil_div(stretch.groups * grains, num_workers)
    columns = min(stretch.columns, share * grain)
    count = stretch.groups * ceil_div(grains, share)
    size = columns * stretch.rows
    workers = num_workers // count
    cuts = _row_cuts(size, stretch.rows, columns, arithmetic, workers)
    first = _rows(count * cuts, columns, ceil_div(stretch.rows, cuts), arithmetic)
    if cuts == 1:
        return (first,)
    left = count * cuts * columns
    return _before(first, left), _rows(count, columns, cuts, _second(arithmetic))


def _mixed_phases(
    stretch: Stretch, arithmetic: Arithmetic, num_workers: int
) -> tuple[Phase, ...]:
    """Rows of columns of neighbours: rows first, the neighbours after them."""
    lanes = num_lanes(arithmetic.source)
    cuts = 1
    for count in range(2, num_workers // stretch.groups + 1):
        # Workers start at whole words, and no column is cut between two of them.
        width = stretch.columns // count * stretch.inner
        if stretch.columns % count == 0 and width % lanes == 0:
            cuts = count
    outputs = stretch.columns // cuts
    count = stretch.groups * cuts
    first = _rows(count, outputs * stretch.inner, stretch.rows, arithmetic)
    second = _neighbours(count, outputs, stretch.inner, _second(arithmetic))
    return _before(first, count * outputs * stretch.inner), second


def _before(first: Phase, num_left: int) -> Phase:
    return replace(first, num_left=num_left)


def _second(arithmetic: Arithmetic) -> Arithmetic:
    """The second phase adds up what the first has left."""
    return replace(arithmetic, source=arithmetic.partials)


def _rows(count: int, columns: int, rows: int, arithmetic: Arithmetic) -> Phase:
    step = arithmetic.step_cycles
    cycles = strided_reduce_cycles(columns, rows, arithmetic.source, step)
    return Phase(count, cycles)


def _neighbours(count: int, outputs: int, size: int, arithmetic: Arithmetic) -> Phase:
    step = arithmetic.step_cycles
    cycles = continuous_reduce_cycles(outputs, size, arithmetic.source, step)
    return Phase(count, cycles)


def _row_cuts(
    size: int, rows: int, columns: int, arithmetic: Arithmetic, num_workers: int
) -> int:
    """Cuts of the rows: as many as shorten PopLibs' estimate of the longest vertex."""
    alone = ceil_div(size, _elements_by_cycle(columns, arithmetic))
    # A cut of one row reduces nothing.
    most = min(rows // 2, (VERTEX_CYCLES + alone) // MIN_CYCLES_PER_CUT)
    cuts, longest = 1, VERTEX_CYCLES + alone
    while cuts < num_workers and cuts + 1 < most:
        after = 2 * VERTEX_CYCLES + alone // (cuts + 1)
        if after >= longest:
            break
        cuts, longest = cuts + 1, after
    return cuts


def _elements_by_cycle(columns: int, arithmetic: Arithmetic) -> int:
    """Elements a cycle in that estimate: as many as fit into rows of columns."""
    width = arithmetic.width(arithmetic.result)
    if columns < width and columns & (columns - 1) == 0:
        return width
    while columns % width:
        width //= 2
    return width
