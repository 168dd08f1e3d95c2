"""Optimiser updates: in place where the weight lies, one codelet per statement.

State nobody has laid out is wished beside the weight; a gradient that lies elsewhere
is exchanged first. An accumulator nobody has laid out is wished beside its gradient, or
beside a weight that is read with it.
"""

from __future__ import annotations

from dataclasses import replace

from popple.graph import DType, TensorType
from popple.plan.blocks.operands import bring_operands, request_operands
from popple.plan.blocks.reduction import Reduction, add_reduction
from popple.plan.builder import PlanBuilder
from popple.plan.codelets.elementwise import fill_cycles
from popple.plan.codelets.rates import multi_codelet
from popple.plan.codelets.update import (
    FLOPS,
    GRADIENT_PASSES,
    PASSES,
    scaled_add_cycles,
)
from popple.plan.mapping import mapping_like
from popple.plan.opplan import Compute, OpPlan, PlanRequest, Rule, TileMapping

_GRADIENT = 1
"""Its position among the inputs of an update"""


def plan_update(request: PlanRequest) -> OpPlan:
    """Bring the gradient to the weight, then the passes of the optimiser."""
    builder = PlanBuilder(request, "update")
    weight = request.signature.inputs[0]
    home = _find_home(builder)
    operands = request_operands(builder)
    wishes = bring_operands(builder, operands, home, weight, "gradient", True)
    behind = builder.position + GRADIENT_PASSES[request.signature.kind]
    _add_passes(builder, weight, home)
    if request.signature.kind == "lamb_update":
        _add_norms(builder, weight, home)
    _release_gradient(builder, behind)
    flops = FLOPS[request.signature.kind] * weight.num_elements
    return builder.finish(_outputs(builder, home), wishes, flops)


def plan_clear(request: PlanRequest) -> OpPlan:
    """Zeros where the accumulator lies."""
    builder = PlanBuilder(request, "update")
    tensor, workers = request.signature.inputs[0], builder.num_workers
    home = builder.input_mapping(0)
    builder.elementwise(
        "clear",
        multi_codelet("popops::Fill", tensor.dtype, 120, 12),
        home,
        tensor,
        lambda n: fill_cycles(tensor.dtype, n, workers),
        flops_per_element=0,
        num_edges=1,
    )
    return builder.finish(_outputs(builder, home), (None,))


def _find_home(builder: PlanBuilder) -> TileMapping:
    """Where the first input that has been laid out lies."""
    tensor, inputs = builder.request.signature.inputs[0], builder.request.inputs
    # The weight comes first and nearly always lies; an accumulator takes its
    # gradient's, or that of a weight behind it.
    if builder.request.signature.kind == "accumulate":
        inputs = (inputs[0], *reversed(inputs[1:]))
    for given in inputs:
        if given is not None:
            return mapping_like(given, tensor)
    return builder.linear(tensor)


def _add_passes(builder: PlanBuilder, weight: TensorType, home: TileMapping) -> None:
    workers, kind = builder.num_workers, builder.request.signature.kind
    for name, table in PASSES[kind]:
        builder.elementwise(
            name,
            multi_codelet(f"popops::{name}", weight.dtype, 350, 24),
            home,
            weight,
            lambda n, table=table: scaled_add_cycles(table, weight.dtype, n, workers),
            flops_per_element=2,
        )
    if len(PASSES[kind]) > 2:
        # Optimisers of more than two passes compute the step before they apply it.
        step = mapping_like(home, weight).bytes_by_tile
        builder.hold("step", step, builder.position - 2)


def _release_gradient(builder: PlanBuilder, first: int) -> None:
    """Steps from `first` on compute from the state: the gradient is not read again."""
    inputs = range(len(builder.request.signature.inputs))
    others = tuple(index for index in inputs if index != _GRADIENT)
    for position, step in enumerate(builder.steps[first:], first):
        if isinstance(step, Compute) and step.reads is None:
            builder.steps[position] = replace(step, reads=others)


def _add_norms(builder: PlanBuilder, weight: TensorType, home: TileMapping) -> None:
    """Norms of the weight and of the step, whose ratio scales the step."""
    kept = (False,) * len(weight.shape)
    scalar = TensorType(DType.F32, ())
    for name in ("weight-norm", "step-norm"):
        reduction = Reduction("SQUARE_ADD", weight, kept)
        add_reduction(builder, name, reduction, home, scalar)


def _outputs(builder: PlanBuilder, home: TileMapping) -> list[TileMapping]:
    weight = builder.request.signature.inputs[0]
    return [
        mapping_like(home, result)
        if result.num_elements == weight.num_elements
        else builder.linear(result)
        for result in builder.request.signature.outputs
    ]


RULES: dict[str, Rule] = {**dict.fromkeys(PASSES, plan_update), "clear": plan_clear}
