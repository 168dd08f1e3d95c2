"""Reductions over dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.ops.forms import emit_elementwise, lower_generic
from popple.capture.tensorflow.ops.images import layout_of
from popple.graph import TensorType
from popple.marks import HALF

_KINDS = {
    "Sum": "reduce_sum",
    "Mean": "reduce_mean",
    "Max": "reduce_max",
    "Min": "reduce_min",
    "Prod": "reduce_prod",
    "Any": "reduce_any",
    "All": "reduce_all",
    "EuclideanNorm": "reduce_norm",
    "ArgMax": "arg_max",
    "ArgMin": "arg_min",
}
_RUNNING = ("Cumsum", "Cumprod", "CumulativeLogsumexp")


def _reduction(kind: str) -> Rule:
    def lower(context: OpContext) -> Sequence[Known]:
        axes = context.ints(1)
        if axes is None:
            return lower_generic(context)
        source = context.name(0)
        rank = len(context.type_of(source).shape)
        dims = tuple(sorted({axis % max(rank, 1) for axis in axes})) if rank else ()
        result = context.result_type()
        if context.attr(HALF):
            # The facade sums in float32 to imitate the machine, which returns the half
            # type.
            result = TensorType(context.type_of(source).dtype, result.shape)
        return [emit_reduction(context, kind, source, dims, result)]

    return lower


def emit_reduction(
    context: OpContext,
    kind: str,
    source: str,
    dims: tuple[int, ...],
    result: TensorType,
) -> str:
    """A reduction of what a permuted view looks at; of one element it is nothing."""
    if not dims or context.type_of(source).num_elements == 1:
        return context.reshape(source, result.shape)
    rank = len(context.type_of(source).shape)
    order = context.source_order(source, rank) or tuple(range(rank))
    inner = context.in_order(source, order)
    shape = context.type_of(inner).shape
    inner_dims = tuple(sorted(order[dim] for dim in dims))
    left = [dim for dim in range(rank) if dim not in inner_dims]
    reduced = TensorType(result.dtype, tuple(shape[dim] for dim in left))
    made = context.emit_one(kind, [inner], reduced, attrs={"dims": inner_dims})
    wanted = [order[dim] for dim in range(rank) if dim not in dims]
    made = context.permute(made, tuple(left.index(dim) for dim in wanted))
    return context.reshape(made, result.shape, ".kept")


def lower_bias_gradient(context: OpContext) -> Sequence[Known]:
    """The sum over everything but channels."""
    source, result = context.name(0), context.result_type()
    rank = len(context.type_of(source).shape)
    channels = layout_of(context, rank).order[1] if rank > 2 else rank - 1
    dims = tuple(dim for dim in range(rank) if dim != channels)
    return [emit_reduction(context, "reduce_sum", source, dims, result)]


def lower_running(context: OpContext) -> Sequence[Known]:
    """A running sum (or product) along one dimension."""
    source = context.name(0)
    rank = max(len(context.type_of(source).shape), 1)
    axes = context.ints(1) or (0,)
    attrs = {"dims": (axes[0] % rank,)}
    result = context.result_type()
    return [context.emit_one("cumulative_sum", [source], result, attrs=attrs)]


def lower_half_square_sum(context: OpContext) -> Sequence[Known]:
    """L2Loss: half the sum of all squares."""
    source, result = context.name(0), context.result_type()
    kind = context.type_of(source)
    squares = emit_elementwise(context, "square", [source], kind, ".squares")
    dims = tuple(range(len(kind.shape)))
    return [emit_reduction(context, "reduce_sum", squares, dims, result)]


RULES: dict[str, Rule] = {
    **{name: _reduction(kind) for name, kind in _KINDS.items()},
    **dict.fromkeys(_RUNNING, lower_running),
    "BiasAddGrad": lower_bias_gradient,
    "L2Loss": lower_half_square_sum,
}
