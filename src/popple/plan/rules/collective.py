"""Exchange between replicas, as rings of the same chip of every replica.

A reduce-scatter and an all-gather each send (R - 1) / R of the bytes over the links,
half of them each way round, in steps; an all-reduce is one after the other. Parts meet
in the middle of the ring after R / 2 steps, or, where that uses the links better, go
all the way in R - 1 steps with parts of half the size (graphcore/poplibs 1.4,
lib/popops/ReplicatedCollectives.cpp, which measured the sizes from which on).

Replicas that fill several racks do it in two levels, since IPU-Links end with the rack:
sums are made within each rack first, then each replica exchanges its share with its
twins in other racks through the gateways; gathering goes the other way (release notes
of GCL 3.0: collectives of groups that span several IPU-Link domains have three phases).

Shares that are read together lie alike: a gradient is copied whole into the layout of
the weight's share and scattered from there, so that nothing moves in the update
(graphcore/popart, willow/src/popx/op/collectives: `getCollectiveLinkedGroup` in
collectivesx.cpp, and `grow` in replicatedreducescatterx.cpp).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

from popple.graph import TensorType
from popple.plan.blocks.operands import Operand, bring_operands
from popple.plan.builder import PlanBuilder, vertices
from popple.plan.codelets.elementwise import BINARY, binary_cycles
from popple.plan.codelets.rates import multi_codelet
from popple.plan.mapping import (
    elements_by_tile,
    is_colocated,
    mapping_like,
    rescaled,
)
from popple.plan.opplan import LinkCopy, Loop, OpPlan, PlanRequest, Rule, TileMapping
from popple.program import Category
from popple.target import Target
from popple.units import ceil_div

_ANY = sys.maxsize
# (replicas up to, bytes of a chip up to): parts meet in the middle of the ring.
_FEW_STEPS = {
    "reduce_scatter": ((4, 1_245_184), (8, 4_980_736), (16, 39_845_888), (_ANY, _ANY)),
    "all_gather": ((4, 622_592), (8, 2_490_368), (16, 19_922_944), (_ANY, _ANY)),
}


@dataclass(frozen=True)
class Ring:
    """Replicas that pass parts round: those of a rack, or one of each rack.

    What goes round is the `share`-th part of a tensor.
    """

    replicas: int
    share: int = 1
    is_between_racks: bool = False

    @property
    def mark(self) -> str:
        """What tells its steps from those of the other level."""
        return "_between_racks" if self.is_between_racks else ""


def rings_of(replicas: int, target: Target) -> tuple[Ring, ...]:
    """The rings of a collective in the order of a sum, none for one replica."""
    in_rack = target.system.rack_chips // target.num_chips
    fills_racks = 0 < in_rack < replicas and replicas % in_rack == 0
    if not fills_racks or not target.system.gateway_bytes_per_second:
        return (Ring(replicas),) if replicas > 1 else ()
    between = Ring(replicas // in_rack, in_rack, is_between_racks=True)
    return (Ring(in_rack), between) if in_rack > 1 else (between,)


def plan_all_reduce(request: PlanRequest) -> OpPlan:
    """Sum the parts around the ring, then pass the sums around."""
    builder, replicas, tensor, mapping = _begin(request)
    target = mapping_like(mapping, request.signature.outputs[0])
    # One replica has nothing to exchange, but the result is still memory of its own.
    if replicas == 1:
        builder.local_copy("copy", target.bytes_by_tile, tensor.dtype)
        return builder.finish([target], (None,))
    rings = rings_of(replicas, request.target)
    _add_rings(builder, "reduce_scatter", tensor, mapping, rings)
    _add_rings(builder, "all_gather", tensor, mapping, reversed(rings))
    return builder.finish([target], (None,))


def plan_reduce_scatter(request: PlanRequest) -> OpPlan:
    """Sum the parts around the ring; each replica keeps one."""
    builder, replicas, tensor, mapping = _begin(request)
    result = request.signature.outputs[0]
    target = _part(mapping_like(mapping, result), replicas)
    rings = rings_of(replicas, request.target)
    if len(request.inputs) == 1:
        _add_rings(builder, "reduce_scatter", tensor, mapping, rings)
        return builder.finish([target], (None,))
    share, kind = builder.input_mapping(1), request.signature.inputs[1]
    whole = _whole(mapping_like(share, tensor))
    first = builder.position
    if is_colocated(target, result, share, kind):
        # A copy is made of what lies there, too: the collective has padding.
        builder.local_copy("arrange", whole.bytes_by_tile, tensor.dtype)
    else:
        bring_operands(builder, [Operand(tensor, mapping)], whole, tensor, "arrange")
    _add_rings(builder, "reduce_scatter", tensor, whole, rings)
    builder.hold("arranged", whole.bytes_by_tile, first)
    return builder.finish([mapping_like(share, result)], (None, None))


def plan_all_gather(request: PlanRequest) -> OpPlan:
    """Pass the parts around the ring."""
    builder, replicas, _, mapping = _begin(request)
    result = request.signature.outputs[0]
    target = mapping_like(mapping, result)
    rings = reversed(rings_of(replicas, request.target))
    _add_rings(builder, "all_gather", result, target, rings)
    # The replica's own part goes into the whole beside those that arrive.
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


def ring_steps(name: str, num_bytes: int, replicas: int) -> int:
    """Steps of a ring, each with a sync of all chips."""
    half, few = replicas // 2, _FEW_STEPS[name]
    is_small = num_bytes < next(least for most, least in few if replicas <= most)
    return max(1, half if is_small else replicas - 1)


_Begun = tuple[PlanBuilder, int, TensorType, TileMapping]


def _begin(request: PlanRequest) -> _Begun:
    builder = PlanBuilder(request, "collective")
    replicas = request.signature.integer("replicas")
    builder.note("ring of replicas", replicas)
    tensor = request.signature.inputs[0]
    return builder, max(1, replicas), tensor, builder.input_mapping(0)


def _add_rings(
    builder: PlanBuilder,
    name: str,
    tensor: TensorType,
    mapping: TileMapping,
    rings: Iterable[Ring],
) -> None:
    for ring in rings:
        if ring.is_between_racks:
            builder.note("racks", ring.replicas)
        _add_ring(builder, name, tensor, mapping, ring)


def _add_ring(
    builder: PlanBuilder,
    name: str,
    tensor: TensorType,
    mapping: TileMapping,
    ring: Ring,
) -> None:
    num_bytes, label = ceil_div(tensor.num_bytes, ring.share), f"{name}{ring.mark}"
    count = ring_steps(name, num_bytes, ring.replicas)
    # The total is the same however many steps there are; more steps send smaller parts.
    sent = ceil_div(ring_bytes(num_bytes, ring.replicas), count)
    by_tile = rescaled(mapping.bytes_by_tile, sent, 1)
    first = len(builder.steps)
    builder.steps.append(
        LinkCopy(label, sent, by_tile, -1, ring.replicas, ring.is_between_racks)
    )
    if name == "reduce_scatter":
        _add_sum(builder, tensor, mapping, ring, count)
    body = tuple(builder.steps[first:])
    builder.steps[first:] = [Loop(count, body)] if count > 1 else body
    # What arrives in a step is in flight beside the tensor.
    last = builder.position - 1
    builder.hold(f"{label}/part", by_tile, last, last, Category.GLOBAL_MESSAGE)


def _add_sum(
    builder: PlanBuilder,
    tensor: TensorType,
    mapping: TileMapping,
    ring: Ring,
    count: int,
) -> None:
    """Add the parts that arrive in a step to the replica's own."""
    rate, workers = BINARY["add"].of(tensor.dtype), builder.num_workers
    sizes = elements_by_tile(mapping, tensor)

    def size(n: int) -> int:
        return ceil_div(n * (ring.replicas - 1), ring.replicas * count * ring.share)

    group = vertices(
        multi_codelet("popops::BinaryOp1D<add", tensor.dtype, 400, 20),
        sizes,
        lambda n: binary_cycles(rate, tensor.dtype, size(n), workers),
        size,
    )
    before = builder.flops
    builder.compute(f"sum{ring.mark}", group)
    # The sum becomes the body of a loop, which was counted once.
    builder.flops += (count - 1) * (builder.flops - before)


def _part(mapping: TileMapping, replicas: int) -> TileMapping:
    # Marked in the layout: a share and a whole of equal bytes must not pass for equal.
    return TileMapping(mapping.bytes_by_tile, mapping.layout.part(replicas))


def _whole(mapping: TileMapping) -> TileMapping:
    return TileMapping(mapping.bytes_by_tile, mapping.layout.whole)


RULES: dict[str, Rule] = {
    "all_reduce": plan_all_reduce,
    "reduce_scatter": plan_reduce_scatter,
    "all_gather": plan_all_gather,
    "take_share": plan_take_share,
}
