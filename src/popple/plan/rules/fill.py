"""Tensors made from nothing: like their template, else linear."""

from __future__ import annotations

from popple.plan.builder import PlanBuilder
from popple.plan.codelets.elementwise import fill_cycles
from popple.plan.codelets.rates import multi_codelet
from popple.plan.mapping import has_aliases, mapping_like
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping


def plan_fill(request: PlanRequest) -> OpPlan:
    """One store per word on every tile of the result."""
    builder = PlanBuilder(request, "fill")
    result = request.signature.outputs[0]
    target = template_mapping(builder)
    workers, kind = builder.num_workers, request.signature.kind
    name = "popops::Iota" if kind == "iota" else "popops::Fill"
    builder.elementwise(
        kind,
        multi_codelet(name, result.dtype, 120, 12),
        target,
        result,
        lambda n: fill_cycles(result.dtype, n, workers),
        flops_per_element=0,
        num_edges=1,
    )
    return builder.finish([target], (None,) * len(request.inputs))


def template_mapping(builder: PlanBuilder) -> TileMapping:
    """The mapping of an input with the result's elements, else linear."""
    signature = builder.request.signature
    result = signature.outputs[0]
    for tensor, mapping in zip(signature.inputs, builder.request.inputs, strict=True):
        is_template = mapping and tensor.num_elements == result.num_elements
        # A broadcast view has fewer bytes than its elements need when they are written.
        if mapping and is_template and not has_aliases(mapping, tensor):
            return mapping_like(mapping, result)
    return builder.linear(result)


RULES: dict[str, Rule] = {"fill": plan_fill, "iota": plan_fill}
