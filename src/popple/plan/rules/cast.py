"""Conversions between element types, where the elements lie."""

from __future__ import annotations

from popple.plan.builder import PlanBuilder
from popple.plan.codelets.elementwise import cast_cycles
from popple.plan.codelets.rates import multi_codelet, type_name
from popple.plan.codelets.sizes import UNARY_STATE_BYTES
from popple.plan.mapping import has_aliases, mapping_like
from popple.plan.opplan import OpPlan, PlanRequest, Rule


def plan_cast(request: PlanRequest) -> OpPlan:
    """One pass; a broadcast view is first made whole by an exchange."""
    builder = PlanBuilder(request, "cast")
    source, result = request.signature.inputs[0], request.signature.outputs[0]
    mapping = builder.input_mapping(0)
    # Elements stay on their tiles; only their sizes change.
    target = mapping_like(mapping, result)
    if has_aliases(mapping, source):
        # A view that repeats elements has fewer bytes than the result has elements.
        target = builder.linear(result)
        builder.rearrange("operand", source, mapping, mapping_like(target, source))
    workers = builder.num_workers
    name = f"popops::Cast1D<{type_name(source.dtype)}"
    codelet = multi_codelet(name, result.dtype, 250, UNARY_STATE_BYTES)
    builder.elementwise(
        "cast",
        codelet,
        target,
        result,
        lambda n: cast_cycles(source.dtype, result.dtype, n, workers),
        flops_per_element=0,
        num_edges=2,
    )
    return builder.finish([target], (None,))


RULES: dict[str, Rule] = {"cast": plan_cast}
