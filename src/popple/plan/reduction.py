"""Reductions as building blocks: on-tile partials, exchange, combining stages.

Used by the rules of reduce, softmax, norm, loss and update. Every tile first reduces
what it holds; results that are whole on one tile stay there. Otherwise partials go to
the tiles of the result, through an intermediate stage when there are many (PopLibs
combines 16 or more partials in two stages).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from popple.graph import DType, TensorType
from popple.plan.builder import PlanBuilder, vertices
from popple.plan.codelets.rates import multi_codelet
from popple.plan.codelets.reduce import strided_reduce_cycles, tile_reduce_cycles
from popple.plan.mapping import elements_by_tile, rescaled, spread_mapping
from popple.plan.opplan import TileMapping
from popple.plan.spans import num_distinct
from popple.program import Category, TileVector
from popple.units import ceil_div

TWO_STAGE_PARTIALS = 16


@dataclass(frozen=True)
class Reduction:
    """What is reduced: `kept` marks the dimensions of `source` that stay.

    `step_cycles` are worker cycles per 64-bit word of partials, `num_results` the
    values carried per output (2 for a sum with a sum of squares).
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
    def is_continuous(self) -> bool:
        """Whether neighbours in memory are reduced with each other."""
        return not self.kept or not self.kept[-1]

    @property
    def partial_type(self) -> DType:
        """Sums of halves are kept as floats on the way."""
        dtype = self.source.dtype
        return dtype if self.keeps_type or not dtype.is_float else DType.F32

    def outputs_of(self, num_elements: int) -> int:
        """Partial results a tile with so many elements gives."""
        return num_distinct(self.source.shape, self.kept, num_elements)


def reduced_type(reduction: Reduction, dtype: DType) -> TensorType:
    """The result as a flat tensor."""
    return TensorType(dtype, (reduction.num_outputs,))


def add_reduction(
    builder: PlanBuilder,
    name: str,
    reduction: Reduction,
    source: TileMapping,
    result: TensorType,
) -> TileMapping:
    """Add the steps of a reduction; gives where its result lies."""
    spans = elements_by_tile(source, reduction.source)
    partials = spans.map(reduction.outputs_of)
    _add_tile_stage(builder, name, reduction, spans)
    if partials.total <= reduction.num_outputs:
        builder.note(f"{name} stages", 1)
        vector = rescaled(partials, result.num_bytes, result.dtype.num_bytes)
        kept = ",".join(str(int(flag)) for flag in reduction.kept)
        return TileMapping(vector, f"{source.layout}>reduce[{kept}]")
    return _combine(builder, name, reduction, partials, result)


def _add_tile_stage(
    builder: PlanBuilder, name: str, reduction: Reduction, spans: TileVector
) -> None:
    dtype, workers = reduction.source.dtype, builder.num_workers
    shape = "Continuous" if reduction.is_continuous else "Strided"
    codelet = multi_codelet(
        f"popops::{shape}Reduce<{reduction.operation}", dtype, 700, 24
    )
    step = reduction.step_cycles

    def cycles(num_elements: int) -> int:
        outputs = reduction.outputs_of(num_elements)
        return tile_reduce_cycles(
            num_elements, outputs, reduction.is_continuous, dtype, step, workers
        )

    flops = reduction.num_results * dtype.is_float
    group = vertices(codelet, spans, cycles, lambda n: flops * n)
    builder.compute(f"{name}/partials", group)


def _combine(
    builder: PlanBuilder,
    name: str,
    reduction: Reduction,
    partials: TileVector,
    result: TensorType,
) -> TileMapping:
    """Bring partials together: `depth` per output, in one stage or two."""
    depth = ceil_div(partials.total, max(1, reduction.num_outputs))
    stages = _stage_depths(depth)
    target = spread_mapping(result, builder.chip)
    partial_bytes = reduction.partial_type.num_bytes * reduction.num_results
    held = partials.scaled(partial_bytes)
    first = builder.position - 1
    builder.note(f"{name} stages", 1 + len(stages))
    builder.note(f"{name} partials", depth)
    for index, fan_in in enumerate(stages):
        depth = ceil_div(depth, fan_in)
        is_last = index == len(stages) - 1
        owned = _owned_outputs(builder, reduction, target, result, depth, is_last)
        received = owned.scaled(fan_in * partial_bytes)
        builder.move(f"{name}/exchange{index}", held, received, 4 * partial_bytes)
        _add_combine(builder, f"{name}/combine{index}", reduction, owned, fan_in)
        builder.hold(f"{name}/partials{index}", held, first, builder.position - 2)
        category = Category.MESSAGE
        last = builder.position - 1
        builder.hold(f"{name}/message{index}", received, last - 1, last, category)
        held, first = owned.scaled(partial_bytes), last
    return target


def _stage_depths(depth: int) -> tuple[int, ...]:
    """Partials combined by each stage; their product covers all of them."""
    if depth < TWO_STAGE_PARTIALS:
        return (depth,)
    first = math.isqrt(depth - 1) + 1
    return first, ceil_div(depth, first)


def _owned_outputs(
    builder: PlanBuilder,
    reduction: Reduction,
    target: TileMapping,
    result: TensorType,
    depth: int,
    is_last: bool,
) -> TileVector:
    """Outputs each tile computes in a stage that leaves `depth` per output."""
    if is_last:
        return elements_by_tile(target, result)
    total = reduction.num_outputs * depth
    return TileVector.spread(
        total, builder.request.num_tiles, builder.request.num_tiles
    )


def _add_combine(
    builder: PlanBuilder,
    name: str,
    reduction: Reduction,
    owned: TileVector,
    fan_in: int,
) -> None:
    dtype, step = reduction.partial_type, reduction.step_cycles
    codelet = multi_codelet(
        f"popops::ReducePartials<{reduction.operation}", dtype, 620, 20
    )
    workers, results = builder.num_workers, reduction.num_results
    flops = dtype.is_float * max(0, fan_in - 1) * results

    def cycles(outputs: int) -> int:
        return strided_reduce_cycles(outputs * results, fan_in, dtype, step, workers)

    builder.compute(name, vertices(codelet, owned, cycles, lambda n: flops * n))
