"""Random numbers, made where they are needed."""

from __future__ import annotations

from popple.plan.builder import PlanBuilder
from popple.plan.codelets.random import WORD_CYCLES, random_cycles
from popple.plan.codelets.rates import multi_codelet, num_lanes
from popple.plan.mapping import mapping_like
from popple.plan.opplan import OpPlan, PlanRequest, Rule
from popple.plan.rules.fill import template_mapping


def plan_random(request: PlanRequest) -> OpPlan:
    """One pass of the generators; dropout gives its mask beside the result."""
    builder = PlanBuilder(request, "random")
    kind, results = request.signature.kind, request.signature.outputs
    target = template_mapping(builder)
    lanes, workers = num_lanes(results[0].dtype), builder.num_workers
    builder.elementwise(
        kind,
        multi_codelet(f"poprand::{_codelet_name(kind)}", results[0].dtype, 350, 24),
        target,
        results[0],
        lambda n: random_cycles(kind, n, lanes, workers),
        num_edges=1 + len(request.inputs),
    )
    outputs = [mapping_like(target, result) for result in results]
    return builder.finish(outputs, (None,) * len(request.inputs))


def _codelet_name(kind: str) -> str:
    return "".join(part.title() for part in kind.split("_"))


RULES: dict[str, Rule] = dict.fromkeys(WORD_CYCLES, plan_random)
