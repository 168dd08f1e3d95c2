"""Losses: an element-wise transform, then a sum; gradients are the transform alone."""

from __future__ import annotations

from popple.graph import TensorType
from popple.plan.blocks.operands import (
    bring_operands,
    choose_result_mapping,
    request_operands,
)
from popple.plan.blocks.reduction import Reduction, add_reduction
from popple.plan.builder import PlanBuilder
from popple.plan.codelets.loss import TRANSFORM, loss_cycles
from popple.plan.codelets.rates import multi_codelet
from popple.plan.mapping import mapping_like
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping


def plan_loss(request: PlanRequest) -> OpPlan:
    """Transform of the predictions; a scalar result is their sum over all of them."""
    builder, target, wishes, predictions = _begin(request)
    outputs: list[TileMapping] = []
    for result in request.signature.outputs:
        # Only the first result is the loss; nll_loss gives its total weight beside it.
        if outputs or result.num_elements >= predictions.num_elements:
            outputs.append(_map_other(builder, target, result, predictions))
            continue
        builder.hold("losses", target.bytes_by_tile, builder.position - 1)
        reduction = _loss_reduction(predictions, result)
        outputs.append(add_reduction(builder, "sum", reduction, target, result))
    return builder.finish(outputs, wishes)


def plan_loss_grad(request: PlanRequest) -> OpPlan:
    """The gradient of each prediction, where the predictions lie."""
    builder, target, wishes, predictions = _begin(request)
    outputs = [
        _map_other(builder, target, result, predictions)
        for result in request.signature.outputs
    ]
    return builder.finish(outputs, wishes)


_Begun = tuple[PlanBuilder, TileMapping, tuple[TileMapping | None, ...], TensorType]


def _begin(request: PlanRequest) -> _Begun:
    """Bring targets to the predictions, the largest input, and transform them."""
    builder = PlanBuilder(request, "loss")
    operands = request_operands(builder)
    kind = request.signature.kind
    predictions = max((o.type for o in operands), key=lambda t: t.num_elements)
    target = choose_result_mapping(builder, operands, predictions)
    wishes = bring_operands(builder, operands, target, predictions)
    workers = builder.num_workers
    builder.elementwise(
        kind,
        multi_codelet(f"popnn::Loss<{kind}", predictions.dtype, 480, 28),
        target,
        predictions,
        lambda n: loss_cycles(kind, predictions.dtype, n, workers),
        flops_per_element=2,
        num_edges=len(operands) + 1,
    )
    return builder, target, wishes, predictions


def _loss_reduction(predictions: TensorType, result: TensorType) -> Reduction:
    """Leading elements stay if the loss has one element per sample."""
    kept = max(1, result.num_elements)
    inner = max(1, predictions.num_elements // kept)
    return Reduction("ADD", TensorType(predictions.dtype, (kept, inner)), (True, False))


def _map_other(
    builder: PlanBuilder,
    target: TileMapping,
    result: TensorType,
    predictions: TensorType,
) -> TileMapping:
    if result.num_elements == predictions.num_elements:
        return mapping_like(target, result)
    return builder.linear(result)


RULES: dict[str, Rule] = {
    **dict.fromkeys(TRANSFORM, plan_loss),
    **dict.fromkeys((f"{kind}_grad" for kind in TRANSFORM), plan_loss_grad),
}
