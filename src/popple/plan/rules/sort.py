"""Ordering along a dimension by a sorting network, one exchange per pass."""

from __future__ import annotations

from popple.graph import Signature
from popple.plan.builder import PlanBuilder, vertices
from popple.plan.codelets.rates import multi_codelet
from popple.plan.codelets.sort import num_sort_stages, sort_stage_cycles
from popple.plan.mapping import elements_by_tile
from popple.plan.opplan import Compute, Loop, Move, OpPlan, PlanRequest, Rule
from popple.program import TileVector


def plan_sort(request: PlanRequest) -> OpPlan:
    """Keys and indices pass through the network; partners meet by exchange."""
    builder = PlanBuilder(request, "sort")
    signature = request.signature
    mapping = builder.input_mapping(0)
    spans = elements_by_tile(mapping, signature.inputs[0])
    pairs = mapping.bytes_by_tile.scaled(2)  # a key and its index
    stages = num_sort_stages(_row_elements(signature))
    stage = (Move("partners", pairs, pairs), _compare(builder, spans))
    builder.steps.append(Loop(stages, stage))
    builder.hold("keys and indices", pairs, 0, 1)
    outputs = [builder.linear(result) for result in signature.outputs]
    builder.local_copy("result", outputs[0].bytes_by_tile, signature.outputs[0].dtype)
    builder.note("passes", stages)
    return builder.finish(outputs, (None,))


def _row_elements(signature: Signature) -> int:
    shape = signature.inputs[0].shape
    (dim,) = signature.ints("dim") or (-1,)
    return shape[dim] if shape else 1


def _compare(builder: PlanBuilder, spans: TileVector) -> Compute:
    dtype, workers = builder.request.signature.inputs[0].dtype, builder.num_workers
    group = vertices(
        multi_codelet("popops::CompareAndSwap", dtype, 520, 28),
        spans,
        lambda n: sort_stage_cycles(dtype, n, workers),
        num_edges=4,
    )
    return Compute("compare", (group,))


RULES: dict[str, Rule] = {"sort": plan_sort, "top_k": plan_sort}
