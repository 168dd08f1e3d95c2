"""Reductions as building blocks: on-tile partials, exchange, combining stages.

Used by the rules of reduce, softmax, norm, loss and update. Every tile first reduces
what it holds; results that are whole on one tile stay there. Otherwise partials go to
the tiles of the result, through intermediate stages while there are many of them for
each output. Stages, their shares and where results go follow PopLibs popops/reduction
(ReductionPlan.cpp, ReductionStages.cpp).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from popple.graph import DType, TensorType
from popple.plan.blocks.spans import num_distinct
from popple.plan.blocks.tile_reduction import (
    Arithmetic,
    Phase,
    Stretch,
    find_stretch,
    tile_phases,
)
from popple.plan.builder import PlanBuilder
from popple.plan.codelets.rates import num_lanes, worker_codelet
from popple.plan.codelets.sizes import REDUCE_CODE_BYTES, REDUCE_STATE_BYTES
from popple.plan.mapping import elements_by_tile, rescaled, spread_mapping
from popple.plan.opplan import TileMapping
from popple.program import Category, Codelet, TileVector, VertexGroup
from popple.units import ceil_div

MORE_STAGES_PARTIALS = 64
"""Partials for each output above which there is one more stage, and the fewest that a
tile of that stage takes: reductionFactorThresholdToAddMoreStages."""
RESULT_WORDS_PER_TILE = 4
"""Fewest words of results on a tile of the last stage."""


@dataclass(frozen=True)
class Reduction:
    """What is reduced: `kept` marks the dimensions of `source` that stay.

    `step_cycles` are worker cycles per 64-bit word of partials, `num_results` the
    reductions that read the data in the same compute phases (2 for a sum with a sum
    of squares).
    """

    operation: str
    source: TensorType
    kept: tuple[bool, ...]
    step_cycles: int = 1
    num_results: int = 1
    keeps_type: bool = False

    @property
    def num_outputs(self) -> int:
        """Elements of the result."""
        pairs = zip(self.source.shape, self.kept, strict=True)
        return math.prod(dim for dim, is_kept in pairs if is_kept)

    @property
    def partial_type(self) -> DType:
        """Sums of halves are kept as floats on the way."""
        dtype = self.source.dtype
        return dtype if self.keeps_type or not dtype.is_float else DType.F32

    @property
    def is_sum(self) -> bool:
        """Whether it runs on the accumulators."""
        return "ADD" in self.operation

    def arithmetic(self, source: DType, result: DType) -> Arithmetic:
        """How tiles reduce data of one type to results of another."""
        step, is_sum = self.step_cycles, self.is_sum
        return Arithmetic(source, self.partial_type, result, step, is_sum)

    def outputs_of(self, num_elements: int) -> int:
        """Partial results a tile with so many elements gives."""
        return num_distinct(self.source.shape, self.kept, num_elements)

    def stretch_of(self, num_elements: int) -> Stretch:
        """Rows and columns of a tile with so many elements."""
        return find_stretch(self.source.shape, self.kept, num_elements)


@dataclass(frozen=True)
class Stage:
    """A share of a combining stage: `rows` partials for each of `columns` outputs.

    `shares_by_tile` says how many of them a tile has.
    """

    columns: int
    rows: int
    shares_by_tile: TileVector

    @property
    def outputs_by_tile(self) -> TileVector:
        """Partial results that tiles leave."""
        return self.shares_by_tile.scaled(self.columns)

    @property
    def width(self) -> int:
        """Outputs that lie together on a tile."""
        return self.stretch_of(self.shares_by_tile.maximum).columns

    def stretch_of(self, num_shares: int) -> Stretch:
        """Rows and columns of a tile with so many shares; outputs lie together."""
        if self.columns == 1:
            return Stretch(1, num_shares, self.rows)
        return Stretch(1, self.columns, self.rows, num_shares)


def reduced_type(reduction: Reduction, dtype: DType) -> TensorType:
    """The result as a flat tensor."""
    return TensorType(dtype, (reduction.num_outputs,))


def add_reduction(
    builder: PlanBuilder,
    name: str,
    reduction: Reduction,
    source: TileMapping,
    result: TensorType,
    begin_tile: int = 0,
) -> TileMapping:
    """Add the steps of a reduction; gives where its result lies.

    A result whose partials come from several tiles lies from `begin_tile` on.
    """
    spans = elements_by_tile(source, reduction.source)
    partials = spans.map(reduction.outputs_of)
    # Tiles without two elements of one output have nothing to reduce yet.
    has_rows = partials.total < spans.total
    # No output has partials on two tiles: it is done where it is.
    is_local = partials.total <= reduction.num_outputs
    if has_rows or is_local:
        made = result.dtype if is_local else reduction.partial_type
        arithmetic = reduction.arithmetic(reduction.source.dtype, made)
        work = _Work(reduction, arithmetic, spans, reduction.stretch_of)
        _add_phases(builder, f"{name}/partials", work)
    if is_local:
        builder.note(f"{name} stages", 1)
        vector = rescaled(partials, result.num_bytes, result.dtype.num_bytes)
        return TileMapping(vector, source.layout.reduced(reduction.kept))
    dtype = reduction.partial_type if has_rows else reduction.source.dtype
    first = builder.position - has_rows
    held = _Partials(dtype, partials, partials.maximum, first)
    # One tile of the result for each few words: work is spread, not memory.
    words = num_lanes(reduction.partial_type)
    least = RESULT_WORDS_PER_TILE * words
    target = spread_mapping(result, builder.chip, words, least, begin_tile)
    _combine(builder, name, reduction, held, result, target)
    return target


@dataclass(frozen=True)
class _Work:
    """What tiles do in one stage, from a number that says how much they have."""

    reduction: Reduction
    arithmetic: Arithmetic
    sizes: TileVector
    stretch_of: Callable[[int], Stretch]

    def phases(self, size: int, num_workers: int) -> tuple[Phase, ...]:
        """The compute phases of a tile that has so much."""
        if not size:
            return ()
        return tile_phases(self.stretch_of(size), self.arithmetic, num_workers)

    def flops(self, size: int) -> int:
        """Operations of a tile on floats, one for each element."""
        is_float = self.arithmetic.source.is_float
        return self.stretch_of(size).num_elements if size and is_float else 0


def _add_phases(builder: PlanBuilder, name: str, work: _Work) -> None:
    """One compute phase, or two where some tile cuts its rows."""
    workers = builder.num_workers
    by_size = {size: work.phases(size, workers) for _, size in work.sizes.runs}
    dtype = work.arithmetic.source
    for index in range(max(map(len, by_size.values()))):
        present = {n: found[index : index + 1] for n, found in by_size.items()}
        chosen = {n: found[0] if found else Phase(0, 0) for n, found in present.items()}
        codelet = worker_codelet(
            f"popops::Reduce<{work.reduction.operation}",
            dtype,
            REDUCE_CODE_BYTES,
            REDUCE_STATE_BYTES,
        )
        group = _group(codelet, work, chosen, has_flops=index == 0)
        builder.compute(f"{name}{index or ''}", group)
        # A second phase reads what the first has left.
        dtype = work.arithmetic.partials
        left = _left(work, chosen)
        if not left.is_zero:
            builder.hold(f"{name}/left", left, builder.position - 1, builder.position)


def _left(work: _Work, phases: dict[int, Phase]) -> TileVector:
    """Bytes that a phase leaves for the one behind it."""
    size = work.arithmetic.partials.num_bytes
    return work.sizes.map(lambda n: phases[n].num_left).scaled(size)


def _group(
    codelet: Codelet, work: _Work, phases: dict[int, Phase], has_flops: bool
) -> VertexGroup:
    sizes, results = work.sizes, work.reduction.num_results

    def flops(size: int) -> int:
        return ceil_div(work.flops(size), max(1, phases[size].num_vertices))

    by_tile = sizes.map(flops)
    return VertexGroup(
        codelet,
        sizes.map(lambda size: phases[size].num_vertices * results),
        sizes.map(lambda size: phases[size].worker_cycles),
        by_tile if has_flops and not by_tile.is_zero else None,
        num_edges=2,
    )


@dataclass(frozen=True)
class _Partials:
    """Partials on their tiles: their type, how many, and how many lie together.

    They are held from step `first` on.
    """

    dtype: DType
    by_tile: TileVector
    width: int
    first: int


def _combine(
    builder: PlanBuilder,
    name: str,
    reduction: Reduction,
    partials: _Partials,
    result: TensorType,
    target: TileMapping,
) -> None:
    """Bring partials together in as many stages as it takes."""
    depth = ceil_div(partials.by_tile.total, max(1, reduction.num_outputs))
    stages = [*_stages(reduction, partials.by_tile, depth)]
    last = Stage(1, _remaining(depth, stages), elements_by_tile(target, result))
    for index, stage in enumerate((*stages, last)):
        made = result.dtype if stage is last else reduction.partial_type
        arithmetic = reduction.arithmetic(partials.dtype, made)
        work = _Work(reduction, arithmetic, stage.shares_by_tile, stage.stretch_of)
        partials = _add_stage(builder, f"{name}/stage{index}", work, stage, partials)
    builder.note(f"{name} partials", depth)
    builder.note(f"{name} stages", len(stages) + 1)


def _add_stage(
    builder: PlanBuilder, name: str, work: _Work, stage: Stage, partials: _Partials
) -> _Partials:
    """Exchange partials and reduce them where they arrive; gives what is left."""
    results = work.reduction.num_results
    size = partials.dtype.num_bytes * results
    held = partials.by_tile.scaled(size)
    received = stage.outputs_by_tile.scaled(stage.rows * size)
    # Only outputs that lie together on both sides travel in one message.
    piece = min(stage.width, partials.width) * size
    moved = builder.move(f"{name}/exchange", held, received, piece)
    _add_phases(builder, name, work)
    builder.hold(f"{name}/partials", held, partials.first, moved)
    builder.hold(f"{name}/message", received, moved, category=Category.MESSAGE)
    dtype, outputs = work.arithmetic.partials, stage.outputs_by_tile
    return _Partials(dtype, outputs, stage.width, builder.position - 1)


def _stages(reduction: Reduction, partials: TileVector, depth: int) -> Iterator[Stage]:
    """Intermediate stages, as long as there is much left for each output."""
    num_tiles, outputs = len(partials), reduction.num_outputs
    width, sources = partials.maximum, partials.num_nonzero
    # Accumulators take two words at once, so sums are cut in pairs of words.
    grain = num_lanes(reduction.partial_type) * (2 if reduction.is_sum else 1)
    while needs_stage(depth, sources, num_tiles):
        columns, rows = stage_share(outputs, depth, width, grain, num_tiles)
        depth = ceil_div(depth, rows)
        shares = ceil_div(outputs, columns) * depth
        spread = TileVector.spread(shares, num_tiles, num_tiles)
        yield Stage(columns, rows, spread)
        width, sources = columns, spread.num_nonzero


def _remaining(depth: int, stages: Iterable[Stage]) -> int:
    """Partials of each output that the stages leave."""
    for stage in stages:
        depth = ceil_div(depth, stage.rows)
    return depth


def needs_stage(depth: int, num_sources: int, num_tiles: int) -> bool:
    """Whether so many partials for each output need one more stage before the last.

    Partials of most tiles go straight to the result if few enough arrive there.
    """
    if depth < 2 * math.sqrt(num_tiles) and num_sources > num_tiles * 3 // 4:
        return False
    return depth > MORE_STAGES_PARTIALS


def stage_share(
    outputs: int, depth: int, width: int, grain: int, num_tiles: int
) -> tuple[int, int]:
    """(columns, rows) of one share of an intermediate stage.

    Columns are cut first, down to the grain or, where many lie together, so that the
    stages reduce equally; then rows, as long as a share keeps enough partials.
    """
    # Two stages that each reduce by the root are the shortest way.
    wide = width // grain // math.isqrt(depth) * grain
    spread = ceil_div(ceil_div(outputs, grain), num_tiles) * grain
    columns = max(1, min(width, max(grain, wide, spread)))
    ideal = max(1, outputs * depth // num_tiles)
    size = depth * columns
    cuts = max(1, min(size // ideal, size // MORE_STAGES_PARTIALS, depth // 2))
    return columns, max(2, ceil_div(depth, cuts))
