"""Indexed reads and writes; the table comes first, as the Graph wants it."""

from __future__ import annotations

from collections.abc import Sequence

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.ops.forms import one_op
from popple.graph import DType, TensorType


def lower_gather(context: OpContext) -> Sequence[Known]:
    """Rows of a table; another dimension is moved to the front and back."""
    axis = _axis(context)
    table, indices = context.name(0), context.name(1)
    batch = int(context.attr("batch_dims", 0) or 0)
    result = context.result_type()
    if axis == 0 or batch:
        return [context.emit_one("gather", [table, indices], result)]
    rank = len(context.type_of(table).shape)
    front = (axis, *(dim for dim in range(rank) if dim != axis))
    moved = context.permute(table, front, ".table")
    count = len(context.type_of(indices).shape)
    # Rows come first in what was gathered; the dimensions that were before the axis go
    # back in front of them.
    back = (
        *range(count, count + axis),
        *range(count),
        *range(count + axis, rank + count - 1),
    )
    shape = [0] * len(back)
    for place, dim in enumerate(back):
        shape[dim] = result.shape[place]
    kind = TensorType(result.dtype, tuple(shape))
    found = context.emit_one("gather", [moved, indices], kind, suffix=".rows")
    return [context.permute(found, back, "")]


def _axis(context: OpContext) -> int:
    rank = max(len(context.input_type(0).shape), 1)
    axes = context.ints(2) if len(context.inputs) > 2 else (0,)
    return (axes or (0,))[0] % rank


def lower_resource_gather(context: OpContext) -> Sequence[Known]:
    """Rows of a variable."""
    table = _table(context)
    names = [table, context.name(1)]
    return [context.emit_one("gather", names, context.result_type())]


def _table(context: OpContext) -> str:
    """The variable as it is now; its shape comes from its handle if it is new."""
    return context.effects.read(context.resource(0), context.handle_type(0))


def add_rows(
    context: OpContext, indices: str, rows: str, table: TensorType, kind: str
) -> str:
    """Rows added to zeros."""
    zeros = context.emit_one("fill", [], table, suffix=".zeros")
    return context.emit_one(kind, [zeros, indices, rows], table)


def lower_scatter(context: OpContext) -> Sequence[Known]:
    """ScatterNd: rows added to zeros."""
    table = context.result_type()
    return [add_rows(context, context.name(0), context.name(1), table, "scatter_add")]


def lower_segments(context: OpContext) -> Sequence[Known]:
    """Rows summed (or their largest found) by the number of their segment."""
    table = context.result_type()
    return [add_rows(context, context.name(1), context.name(0), table, "scatter_add")]


def lower_unique(context: OpContext) -> Sequence[Known]:
    """Different values and where they occur: as many places as there are values.

    How many values differ is not known when compiling: memory is there for all.
    """
    values = context.input_type(0)
    indices = TensorType(DType.I32, values.shape)
    found = context.emit("sort", [context.name(0)], [values, indices])
    return [found[0], found[1], *([found[1]] * (len(context.op.outputs) - 2))]


def lower_one_hot(context: OpContext) -> Sequence[Known]:
    """1 at each index."""
    return [context.emit_one("one_hot", [context.name(0)], context.result_type())]


_SEGMENTS = (
    "SegmentMax",
    "SegmentMaxV2",
    "SegmentMean",
    "SegmentMin",
    "SegmentMinV2",
    "SegmentProd",
    "SegmentProdV2",
    "SegmentSum",
    "SegmentSumV2",
    "UnsortedSegmentMax",
    "UnsortedSegmentMin",
    "UnsortedSegmentProd",
    "UnsortedSegmentSum",
)

RULES: dict[str, Rule] = {
    **dict.fromkeys(_SEGMENTS, lower_segments),
    "Gather": lower_gather,
    "GatherV2": lower_gather,
    "GatherNd": one_op("gather", num_inputs=2),
    "Bincount": lower_scatter,
    "DenseBincount": lower_scatter,
    "OneHot": lower_one_hot,
    "ResourceGather": lower_resource_gather,
    "ResourceGatherNd": lower_resource_gather,
    "ScatterNd": lower_scatter,
    "TensorScatterAdd": one_op("scatter_add"),
    "TensorScatterMax": one_op("scatter_add"),
    "TensorScatterMin": one_op("scatter_add"),
    "TensorScatterSub": one_op("scatter_add"),
    "TensorScatterUpdate": one_op("scatter"),
    "Unique": lower_unique,
    "UniqueV2": lower_unique,
    "UniqueWithCounts": lower_unique,
}
