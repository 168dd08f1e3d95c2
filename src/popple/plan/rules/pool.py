"""Pooling and its gradients: what windows read is exchanged, then reduced on tiles."""

from __future__ import annotations

from popple.graph import Signature, TensorType
from popple.plan.builder import PlanBuilder, vertices
from popple.plan.codelets.rates import multi_codelet
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping
from popple.plan.pooling import PoolProblem, PoolSplit, find_pool_split
from popple.program import Category, TileVector
from popple.units import ceil_div


def plan_pool(request: PlanRequest) -> OpPlan:
    """Windows are brought to the tiles of the result and reduced there."""
    builder = PlanBuilder(request, "pool")
    signature = request.signature
    result = signature.outputs[0]
    problem = pool_problem(signature)
    split = find_pool_split(problem, builder.chip)
    target = _result_mapping(builder, result, split)
    _exchange_windows(builder, problem, split)
    flops = problem.num_items * ceil_div(result.num_elements, split.num_tiles)
    group = vertices(
        multi_codelet(f"popnn::{_codelet_name(signature)}", result.dtype, 900, 40),
        _used(builder, split),
        lambda _: split.cycles,
        lambda _: flops,
        num_edges=len(request.inputs) + 1,
    )
    builder.compute(signature.kind, group)
    positions = "x".join(map(str, split.positions))
    channels = split.num_groups * split.channel_group
    builder.note("positions by tile", f"{positions} of {channels} channels")
    builder.note("tiles", split.num_tiles)
    return builder.finish([target, *_others(builder)], (None,) * len(request.inputs))


def pool_problem(signature: Signature) -> PoolProblem:
    """What a pooling, or the gradient of one, computes."""
    result, source = signature.outputs[0], signature.inputs[0]
    kernel = signature.ints("kernel")
    rank = min(len(kernel), len(result.shape))
    batch, channels, field = _split_shape(result, rank)
    return PoolProblem(
        batch,
        channels,
        field,
        _split_shape(source, rank)[2],
        kernel[-rank:],
        result.dtype,
        is_max=signature.kind.startswith("max"),
        is_grad=signature.kind.endswith("grad"),
    )


def _split_shape(tensor: TensorType, rank: int) -> tuple[int, int, tuple[int, ...]]:
    """Batch, channels and field; the last `rank` dimensions are the field."""
    before, field = tensor.shape[:-rank], tensor.shape[-rank:]
    channels = before[-1] if before else 1
    batch = tensor.num_elements // max(
        1, channels * TensorType(tensor.dtype, field).num_elements
    )
    return max(1, batch), max(1, channels), tuple(max(1, n) for n in field)


def _used(builder: PlanBuilder, split: PoolSplit) -> TileVector:
    """1 on every tile that has something to do."""
    tiles = builder.request.num_tiles
    return TileVector.spread(split.num_tiles, split.num_tiles, tiles)


def _result_mapping(
    builder: PlanBuilder, result: TensorType, split: PoolSplit
) -> TileMapping:
    vector = TileVector.spread(
        result.num_bytes,
        split.num_tiles,
        builder.request.num_tiles,
        result.dtype.num_bytes,
    )
    shape = ",".join(map(str, result.shape))
    return TileMapping(vector, f"pool[{shape}/{split.channel_group}]")


def _exchange_windows(
    builder: PlanBuilder, problem: PoolProblem, split: PoolSplit
) -> None:
    """Bring what windows read, from wherever it lies."""
    needed = _used(builder, split).scaled(split.needed_bytes)
    mapping = builder.input_mapping(0).bytes_by_tile
    held = _limited(mapping.scaled(problem.num_sources), needed.total)
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


RULES: dict[str, Rule] = dict.fromkeys(
    ("max_pool", "avg_pool", "max_pool_grad", "avg_pool_grad"), plan_pool
)
