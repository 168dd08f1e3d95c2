"""Pooling and its gradients: halos are exchanged, windows reduced on tiles."""

from __future__ import annotations

import math

from popple.graph import Signature, TensorType
from popple.plan.builder import PlanBuilder, vertices
from popple.plan.codelets.pool import pool_cycles, pool_grad_cycles
from popple.plan.codelets.rates import multi_codelet, num_lanes
from popple.plan.mapping import elements_by_tile, mapping_like
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping
from popple.program import Category, TileVector
from popple.units import ceil_div


def plan_pool(request: PlanRequest) -> OpPlan:
    """Windows of the input; the result lies in proportion to the input."""
    builder = PlanBuilder(request, "pool")
    signature = request.signature
    source, result = signature.inputs[0], signature.outputs[0]
    mapping = builder.input_mapping(0)
    target = _scaled_mapping(mapping, signature)
    window = window_size(signature)
    _exchange_windows(builder, source, mapping, result, target, window)
    lanes, workers = num_lanes(result.dtype), builder.num_workers
    group = vertices(
        multi_codelet(f"popnn::{_codelet_name(signature)}", result.dtype, 900, 40),
        elements_by_tile(target, result),
        lambda n: pool_cycles(n, window, lanes, workers),
        lambda n: n * window,
    )
    builder.compute(signature.kind, group)
    return builder.finish([target, *_others(builder)], (None,))


def plan_pool_grad(request: PlanRequest) -> OpPlan:
    """Each field element gathers from the windows that cover it."""
    builder = PlanBuilder(request, "pool")
    signature = request.signature
    source, result = signature.inputs[0], signature.outputs[0]
    mapping = builder.input_mapping(0)
    target = _grad_mapping(builder, mapping, signature)
    covers = num_covering_windows(signature)
    _exchange_windows(builder, source, mapping, result, target, covers)
    lanes, workers = num_lanes(result.dtype), builder.num_workers
    group = vertices(
        multi_codelet(f"popnn::{_codelet_name(signature)}", result.dtype, 900, 44),
        elements_by_tile(target, result),
        lambda n: pool_grad_cycles(n, covers, lanes, workers),
        lambda n: n * covers,
        num_edges=len(request.inputs) + 1,
    )
    builder.compute(signature.kind, group)
    return builder.finish([target], (None,) * len(request.inputs))


def window_size(signature: Signature) -> int:
    """Elements of one window."""
    return max(1, math.prod(signature.ints("kernel")))


def num_covering_windows(signature: Signature) -> int:
    """Windows over one field element, on average: window times outputs / inputs."""
    outputs = signature.inputs[0].num_elements
    inputs = max(1, signature.outputs[0].num_elements)
    return max(1, ceil_div(window_size(signature) * outputs, inputs))


def _scaled_mapping(mapping: TileMapping, signature: Signature) -> TileMapping:
    """The result on the tiles of the input, in another order of its own."""
    scaled = mapping_like(mapping, signature.outputs[0])
    shape = ",".join(map(str, signature.outputs[0].shape))
    return TileMapping(scaled.bytes_by_tile, f"pool[{shape}]")


def _grad_mapping(
    builder: PlanBuilder, mapping: TileMapping, signature: Signature
) -> TileMapping:
    """Like the field if it is among the inputs, else like the output gradient."""
    result = signature.outputs[0]
    for tensor, given in zip(signature.inputs, builder.request.inputs, strict=True):
        if given and tensor.num_elements == result.num_elements:
            return mapping_like(given, result)
    return _scaled_mapping(mapping, signature)


def _exchange_windows(
    builder: PlanBuilder,
    source: TensorType,
    mapping: TileMapping,
    result: TensorType,
    target: TileMapping,
    reads_per_element: int,
) -> None:
    """Bring what windows need: never more than they read, nor than 5/4 of the input.

    Neighbouring windows share elements, so a tile needs its part of the input and a
    border; a quarter for the border is assumed.
    """
    size = source.dtype.num_bytes
    share = ceil_div(5 * source.num_elements, 4 * max(1, result.num_elements))
    reads = min(reads_per_element, max(1, share))
    needed = elements_by_tile(target, result).map(lambda n: n * reads * size)
    held = _limited(mapping.bytes_by_tile, needed.total)
    first = builder.move("windows/exchange", held, needed)
    builder.hold("windows/message", needed, first, first + 1, Category.MESSAGE)


def _limited(vector: TileVector, total: int) -> TileVector:
    """Bytes sent when fewer than all are asked for."""
    whole = max(1, vector.total)
    return vector.map(lambda value: min(value, ceil_div(value * total, whole)))


def _others(builder: PlanBuilder) -> list[TileMapping]:
    return [builder.linear(t) for t in builder.request.signature.outputs[1:]]


def _codelet_name(signature: Signature) -> str:
    return "".join(part.title() for part in signature.kind.split("_"))


RULES: dict[str, Rule] = {
    "max_pool": plan_pool,
    "avg_pool": plan_pool,
    "max_pool_grad": plan_pool_grad,
    "avg_pool_grad": plan_pool_grad,
}
