"""Softmax and log-softmax with gradients, composed as in PopLibs popnn/NonLinearity."""

from __future__ import annotations

from popple.graph import Signature, TensorType
from popple.plan.blocks.broadcast import (
    add_binary,
    add_multicast,
    add_statistics_pass,
    add_unary,
)
from popple.plan.blocks.operands import (
    bring_operands,
    choose_result_mapping,
    request_operands,
)
from popple.plan.blocks.reduction import Reduction, add_reduction, reduced_type
from popple.plan.builder import PlanBuilder
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping


def plan_softmax(request: PlanRequest) -> OpPlan:
    """Largest per row, subtract, exp, sum per row, times the inverse."""
    builder, target, wishes, tensor = _begin(request)
    _add_row_statistic(builder, "MAX", "sub", target, None)
    add_unary(builder, "exp", tensor, target)
    # One division per row and a product per element: divisions cost over three times as
    # much as products.
    _add_row_statistic(builder, "ADD", "mul", target, "reciprocal")
    return builder.finish([target], wishes)


def plan_log_softmax(request: PlanRequest) -> OpPlan:
    """Largest per row, subtract, sum of exponentials, subtract its logarithm."""
    builder, target, wishes, tensor = _begin(request)
    _add_row_statistic(builder, "MAX", "sub", target, None)
    add_unary(builder, "exp", tensor, target)
    builder.hold("exponentials", target.bytes_by_tile, builder.position - 1)
    _add_row_statistic(builder, "ADD", "sub", target, "log")
    return builder.finish([target], wishes)


def plan_softmax_grad(request: PlanRequest) -> OpPlan:
    """y (g - sum of g y per row)."""
    builder, target, wishes, tensor = _begin(request)
    add_binary(builder, "mul", tensor, target)
    _add_row_statistic(builder, "ADD", "sub", target, None)
    add_binary(builder, "mul", tensor, target)
    return builder.finish([target], wishes)


def plan_log_softmax_grad(request: PlanRequest) -> OpPlan:
    """g - exp(y) (sum of g per row)."""
    builder, target, wishes, tensor = _begin(request)
    add_unary(builder, "exp", tensor, target)
    builder.hold("exponentials", target.bytes_by_tile, builder.position - 1)
    _add_row_statistic(builder, "ADD", "mul", target, None)
    add_binary(builder, "sub", tensor, target)
    return builder.finish([target], wishes)


_Begun = tuple[PlanBuilder, TileMapping, tuple[TileMapping | None, ...], TensorType]


def _begin(request: PlanRequest) -> _Begun:
    builder = PlanBuilder(request, "softmax")
    result = request.signature.outputs[0]
    operands = request_operands(builder)
    target = choose_result_mapping(builder, operands, result)
    wishes = bring_operands(builder, operands, target, result)
    return builder, target, wishes, result


def _kept(signature: Signature) -> tuple[bool, ...]:
    rank = len(signature.outputs[0].shape)
    dim = signature.integer("dim")
    return tuple(index != dim % max(1, rank) for index in range(rank))


def _add_row_statistic(
    builder: PlanBuilder,
    operation: str,
    pass_kind: str,
    mapping: TileMapping,
    last: str | None,
) -> None:
    """One number per row, changed by `last`, applied to the row by `pass_kind`."""
    signature = builder.request.signature
    tensor, kept = signature.outputs[0], _kept(signature)
    # A largest element is one of the row, so halves lose nothing; sums are floats.
    reduction = Reduction(operation, tensor, kept, keeps_type=operation == "MAX")
    rows = reduced_type(reduction, tensor.dtype)
    name = f"{operation.lower()}-{pass_kind}"
    source = add_reduction(builder, name, reduction, mapping, rows)
    if last:
        add_unary(builder, last, rows, source)
    needs = add_multicast(builder, name, tensor, mapping, kept, source, tensor.dtype)
    add_statistics_pass(builder, pass_kind, tensor, mapping, kept, needs)


RULES: dict[str, Rule] = {
    "softmax": plan_softmax,
    "log_softmax": plan_log_softmax,
    "softmax_grad": plan_softmax_grad,
    "log_softmax_grad": plan_log_softmax_grad,
}
