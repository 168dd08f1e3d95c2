"""Reductions over dimensions, and the running sum."""

from __future__ import annotations

from popple.graph import DType, TensorType
from popple.plan.blocks.broadcast import add_binary, add_unary
from popple.plan.blocks.reduction import Reduction, add_reduction
from popple.plan.builder import PlanBuilder, vertices
from popple.plan.codelets.rates import multi_codelet
from popple.plan.codelets.reduce import continuous_reduce_cycles
from popple.plan.mapping import elements_by_tile, mapping_like
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping
from popple.program import TileVector
from popple.units import ceil_div

# Kind: operation, worker cycles per word, values carried, whether the type stays.
# A log-add takes 13 (half) or 23 (float) cycles per operation, PopLibs popops.
_OPERATIONS: dict[str, tuple[str, int, int, bool]] = {
    "reduce_sum": ("ADD", 1, 1, False),
    "reduce_mean": ("ADD", 1, 1, False),
    "reduce_max": ("MAX", 1, 1, True),
    "reduce_min": ("MIN", 1, 1, True),
    "reduce_prod": ("MUL", 1, 1, False),
    "reduce_any": ("LOGICAL_OR", 5, 1, True),
    "reduce_all": ("LOGICAL_AND", 5, 1, True),
    "reduce_norm": ("SQUARE_ADD", 1, 1, False),
    "reduce_log_sum_exp": ("LOG_ADD", 23, 1, False),
    "reduce_variance": ("ADD_AND_SQUARE_ADD", 1, 2, False),
    "arg_max": ("ARG_MAX", 6, 2, False),  # assumed: value and index are compared
    "arg_min": ("ARG_MIN", 6, 2, False),
}
_LAST_PASS = {"reduce_norm": "sqrt", "reduce_log_sum_exp": "log"}


def kept_dims(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[bool, ...]:
    """Which dimensions stay; no dims at all means that everything is reduced."""
    return tuple(bool(dims) and dim not in dims for dim in range(len(shape)))


def plan_reduce(request: PlanRequest) -> OpPlan:
    """On-tile partials, exchange, combination, and a last pass where one is due."""
    builder = PlanBuilder(request, "reduce")
    signature = request.signature
    source, result = signature.inputs[0], signature.outputs[0]
    operation, step, results, keeps_type = _OPERATIONS[signature.kind]
    kept = kept_dims(source.shape, signature.ints("dims"))
    reduction = Reduction(operation, source, kept, step, results, keeps_type)
    mapping = builder.input_mapping(0)
    target = add_reduction(builder, "reduce", reduction, mapping, result)
    # On the results, which are few; a mean needs none, its factor is part of the sum.
    if last := _LAST_PASS.get(signature.kind):
        add_unary(builder, last, result, target)
    return builder.finish([target], (None,))


def plan_cumulative_sum(request: PlanRequest) -> OpPlan:
    """A running sum per tile, the sums of the tiles before, and their addition."""
    builder = PlanBuilder(request, "reduce")
    source, result = request.signature.inputs[0], request.signature.outputs[0]
    mapping = builder.input_mapping(0)
    target = mapping_like(mapping, result)
    _add_running_sum(builder, source, mapping)
    carries = _carries(mapping.bytes_by_tile, source.dtype)
    # A tile may need the sums of all tiles before it: the last one does.
    before = carries.map(lambda size: size and size * carries.num_nonzero)
    builder.move("carries/exchange", carries, before, source.dtype.num_bytes)
    add_binary(builder, "add", result, target, "BroadcastScalar1D")
    return builder.finish([target], (None,))


def _add_running_sum(
    builder: PlanBuilder, source: TensorType, mapping: TileMapping
) -> None:
    spans, dtype = elements_by_tile(mapping, source), source.dtype
    codelet = multi_codelet("popops::CumulativeSum", dtype, 420)
    workers = builder.num_workers

    def cycles(size: int) -> int:
        share = ceil_div(size, workers)
        return workers * continuous_reduce_cycles(share, 1, dtype, 1)

    builder.compute("scan", vertices(codelet, spans, cycles, lambda n: n))


def _carries(held: TileVector, dtype: DType) -> TileVector:
    """One sum from every tile that holds something."""
    return held.map(lambda num_bytes: dtype.num_bytes if num_bytes else 0)


RULES: dict[str, Rule] = {
    **dict.fromkeys(_OPERATIONS, plan_reduce),
    "cumulative_sum": plan_cumulative_sum,
}
