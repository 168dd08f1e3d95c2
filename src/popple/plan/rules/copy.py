"""Traffic beyond a chip: host streams, off-chip memory, other chips, stashes."""

from __future__ import annotations

from popple.graph import TensorType
from popple.plan.blocks.operands import Operand, bring_operands
from popple.plan.builder import PlanBuilder, vertices
from popple.plan.codelets.rates import multi_codelet, num_lanes
from popple.plan.codelets.shape import dynamic_slice_cycles
from popple.plan.mapping import elements_by_tile, mapping_like
from popple.plan.opplan import (
    HostCopy,
    LinkCopy,
    OpPlan,
    PlanRequest,
    Rule,
    TileMapping,
)


def plan_stream_in(request: PlanRequest) -> OpPlan:
    """From the host, spread linearly."""
    builder = PlanBuilder(request, "copy")
    target = builder.linear(request.signature.outputs[0])
    builder.steps.append(HostCopy("stream_in", target.bytes_by_tile, to_host=False))
    return builder.finish([target])


def plan_stream_out(request: PlanRequest) -> OpPlan:
    """To the host, from where the tensor lies."""
    builder = PlanBuilder(request, "copy")
    source = builder.input_mapping(0)
    builder.steps.append(HostCopy("stream_out", source.bytes_by_tile, to_host=True))
    return builder.finish([], (None,))


def plan_remote_load(request: PlanRequest) -> OpPlan:
    """From off-chip memory, to where the like tensor lies or spread linearly."""
    builder = PlanBuilder(request, "copy")
    result = request.signature.outputs[0]
    target = builder.linear(result)
    if request.inputs:
        target = mapping_like(builder.input_mapping(0), result)
    copy = HostCopy("remote_load", target.bytes_by_tile, False, is_remote_buffer=True)
    builder.steps.append(copy)
    return builder.finish([target], (None,) * len(request.inputs))


def plan_remote_store(request: PlanRequest) -> OpPlan:
    """To off-chip memory, from where the tensor lies."""
    builder = PlanBuilder(request, "copy")
    source = builder.input_mapping(0).bytes_by_tile
    copy = HostCopy("remote_store", source, to_host=True, is_remote_buffer=True)
    builder.steps.append(copy)
    return builder.finish([], (None,))


def plan_chip_copy(request: PlanRequest) -> OpPlan:
    """Each tile sends to the tile of the same number of the other chip."""
    builder = PlanBuilder(request, "copy")
    result = request.signature.outputs[0]
    target = mapping_like(builder.input_mapping(0), result)
    source_chip = request.signature.integer("source")
    builder.steps.append(
        LinkCopy("chip_copy", result.num_bytes, target.bytes_by_tile, source_chip)
    )
    return builder.finish([target], (None,))


def plan_stash(request: PlanRequest) -> OpPlan:
    """The value goes to its tile's part of the ring, which lies beside it."""
    builder = PlanBuilder(request, "copy")
    ring, value = request.signature.inputs
    # Entries beside the value they are copied from cost no exchange, only a copy.
    home = request.inputs[0] or _ring_mapping(builder.input_mapping(1), ring)
    place = _entry_mapping(home, value)
    operand = Operand(value, builder.input_mapping(1))
    bring_operands(builder, [operand], place, value, "value")
    _add_slice(builder, "popops::DynamicUpdateSlice1D", place, value)
    return builder.finish([home], (None if request.inputs[0] else home, None))


def plan_restore(request: PlanRequest) -> OpPlan:
    """The oldest entry of the ring is copied out on every tile."""
    builder = PlanBuilder(request, "copy")
    ring, result = request.signature.inputs[0], request.signature.outputs[0]
    home = request.inputs[0] or _ring_mapping(builder.linear(result), ring)
    target = _entry_mapping(home, result)
    _add_slice(builder, "popops::DynamicSlice1D", target, result)
    return builder.finish([target], (None if request.inputs[0] else home,))


def _ring_mapping(entry: TileMapping, ring: TensorType) -> TileMapping:
    return TileMapping(mapping_like(entry, ring).bytes_by_tile, entry.layout.ring())


def _entry_mapping(ring: TileMapping, entry: TensorType) -> TileMapping:
    return TileMapping(mapping_like(ring, entry).bytes_by_tile, ring.layout.entry)


def _add_slice(
    builder: PlanBuilder, name: str, mapping: TileMapping, tensor: TensorType
) -> None:
    lanes, workers = num_lanes(tensor.dtype), builder.num_workers
    group = vertices(
        multi_codelet(name, tensor.dtype, 260, 24),
        elements_by_tile(mapping, tensor),
        lambda n: dynamic_slice_cycles(n, lanes, workers),
    )
    builder.compute(builder.request.signature.kind, group)


RULES: dict[str, Rule] = {
    "stream_in": plan_stream_in,
    "stream_out": plan_stream_out,
    "remote_load": plan_remote_load,
    "remote_store": plan_remote_store,
    "chip_copy": plan_chip_copy,
    "stash": plan_stash,
    "restore": plan_restore,
}
