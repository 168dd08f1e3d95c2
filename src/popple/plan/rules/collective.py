"""Exchange between replicas, as rings of the same chip of every replica.

A reduce-scatter and an all-gather each send (R - 1) / R of the bytes over the links;
an all-reduce is one after the other.
"""

from __future__ import annotations

from popple.graph import TensorType
from popple.plan.builder import PlanBuilder, vertices
from popple.plan.codelets.elementwise import BINARY, binary_cycles
from popple.plan.codelets.rates import multi_codelet
from popple.plan.mapping import elements_by_tile, mapping_like, rescaled
from popple.plan.opplan import LinkCopy, OpPlan, PlanRequest, Rule, TileMapping
from popple.program import Category
from popple.units import ceil_div


def plan_all_reduce(request: PlanRequest) -> OpPlan:
    """Sum the parts around the ring, then pass the sums around."""
    builder, replicas, tensor, mapping = _begin(request)
    target = mapping_like(mapping, request.signature.outputs[0])
    if replicas == 1:
        builder.local_copy("copy", target.bytes_by_tile, tensor.dtype)
        return builder.finish([target], (None,))
    _add_ring(builder, "reduce_scatter", tensor, mapping, replicas)
    _add_sum(builder, tensor, mapping, replicas)
    _add_ring(builder, "all_gather", tensor, mapping, replicas)
    return builder.finish([target], (None,))


def plan_reduce_scatter(request: PlanRequest) -> OpPlan:
    """Sum the parts around the ring; each replica keeps one."""
    builder, replicas, tensor, mapping = _begin(request)
    if replicas > 1:
        _add_ring(builder, "reduce_scatter", tensor, mapping, replicas)
    _add_sum(builder, tensor, mapping, replicas)
    target = mapping_like(mapping, request.signature.outputs[0])
    return builder.finish([_part(target, replicas)], (None,))


def plan_all_gather(request: PlanRequest) -> OpPlan:
    """Pass the parts around the ring."""
    builder, replicas, _, mapping = _begin(request)
    result = request.signature.outputs[0]
    target = mapping_like(mapping, result)
    if replicas > 1:
        _add_ring(builder, "all_gather", result, target, replicas)
    builder.local_copy("join", mapping.bytes_by_tile, result.dtype)
    return builder.finish([_whole(target)], (None,))


def plan_take_share(request: PlanRequest) -> OpPlan:
    """The replica's share of a tensor: a part of what lies on each tile."""
    builder, replicas, tensor, mapping = _begin(request)
    target = _part(mapping_like(mapping, request.signature.outputs[0]), replicas)
    builder.local_copy("take_share", target.bytes_by_tile, tensor.dtype)
    return builder.finish([target], (None,))


def ring_bytes(num_bytes: int, replicas: int) -> int:
    """Bytes a chip sends when each of R parts but one passes through it."""
    return ceil_div(num_bytes * (replicas - 1), replicas)


_Begun = tuple[PlanBuilder, int, TensorType, TileMapping]


def _begin(request: PlanRequest) -> _Begun:
    builder = PlanBuilder(request, "collective")
    (replicas,) = request.signature.ints("replicas")
    builder.note("ring of replicas", replicas)
    tensor = request.signature.inputs[0]
    return builder, max(1, replicas), tensor, builder.input_mapping(0)


def _add_ring(
    builder: PlanBuilder,
    name: str,
    tensor: TensorType,
    mapping: TileMapping,
    replicas: int,
) -> None:
    sent = ring_bytes(tensor.num_bytes, replicas)
    by_tile = rescaled(mapping.bytes_by_tile, sent, 1)
    builder.steps.append(LinkCopy(name, sent, by_tile, -1, replicas))
    # One part of R is in flight at a time.
    part = rescaled(mapping.bytes_by_tile, ceil_div(tensor.num_bytes, replicas), 1)
    last = builder.position - 1
    builder.hold(f"{name}/part", part, last, last, Category.GLOBAL_MESSAGE)


def _add_sum(
    builder: PlanBuilder, tensor: TensorType, mapping: TileMapping, replicas: int
) -> None:
    rate, workers = BINARY["add"].of(tensor.dtype), builder.num_workers
    rounds = max(1, replicas - 1)
    sizes = elements_by_tile(mapping, tensor)
    group = vertices(
        multi_codelet("popops::BinaryOp1D<add", tensor.dtype, 400, 20),
        sizes,
        lambda n: (
            rounds * binary_cycles(rate, tensor.dtype, ceil_div(n, replicas), workers)
        ),
        lambda n: rounds * ceil_div(n, replicas),
    )
    builder.compute("sum", group)


def _part(mapping: TileMapping, replicas: int) -> TileMapping:
    return TileMapping(mapping.bytes_by_tile, f"{mapping.layout}>part[{replicas}]")


def _whole(mapping: TileMapping) -> TileMapping:
    base, mark, last = mapping.layout.rpartition(">")
    is_part = bool(mark) and last.startswith("part[")
    return TileMapping(mapping.bytes_by_tile, base if is_part else mapping.layout)


RULES: dict[str, Rule] = {
    "all_reduce": plan_all_reduce,
    "reduce_scatter": plan_reduce_scatter,
    "all_gather": plan_all_gather,
    "take_share": plan_take_share,
}
