"""Pooling and its gradients: what windows read is exchanged, then reduced on tiles.

A window as large as the field makes a reduction, and its gradient a broadcast, as in
PopLibs popnn/Pooling.cpp.
"""

from __future__ import annotations

import math

from popple.graph import Signature, TensorType
from popple.plan.blocks.broadcast import add_binary
from popple.plan.blocks.pooling import PoolProblem, PoolSplit, find_pool_split
from popple.plan.blocks.reduction import Reduction, add_reduction
from popple.plan.builder import SHUFFLED_PIECE_BYTES, PlanBuilder, vertices
from popple.plan.codelets.rates import multi_codelet
from popple.plan.layout import Grouped, Layout, PoolTiles
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping
from popple.program import Category, TileVector
from popple.units import ceil_div


def plan_pool(request: PlanRequest) -> OpPlan:
    """Windows are brought to the tiles of the result and reduced there."""
    builder = PlanBuilder(request, "pool")
    problem = pool_problem(request)
    if problem.is_whole:
        return _plan_reduction(builder, problem)
    return _plan_windows(builder, problem)


def plan_pool_grad(request: PlanRequest) -> OpPlan:
    """Every element gathers from the windows that cover it.

    The gradient of a maximum is first brought to where the forward result lies.
    """
    builder = PlanBuilder(request, "pool")
    problem = pool_problem(request)
    # The gradient of a maximum has to find its place again, so it is no broadcast.
    if problem.forward.is_whole and not problem.is_max:
        return _plan_broadcast(builder)
    if problem.is_max:
        problem = _move_gradient(builder, problem)
    return _plan_windows(builder, problem)


def _plan_windows(builder: PlanBuilder, problem: PoolProblem) -> OpPlan:
    signature = builder.request.signature
    result = signature.outputs[0]
    split = find_pool_split(problem, builder.chip)
    target = _spread(builder, result, split.num_tiles, split.channel_group, problem)
    _exchange_windows(builder, problem, split)
    flops = problem.num_items * ceil_div(result.num_elements, split.num_tiles)
    group = vertices(
        multi_codelet(f"popnn::{_codelet_name(signature)}", result.dtype, 900, 40),
        _used(builder, split),
        lambda _: split.cycles,
        lambda _: flops,
        num_edges=len(signature.inputs) + 1,
    )
    builder.compute(signature.kind, group)
    positions = "x".join(map(str, split.positions))
    channels = split.num_groups * split.channel_group
    builder.note("positions by tile", f"{positions} of {channels} channels")
    builder.note("tiles", split.num_tiles)
    return builder.finish([target, *_others(builder)], _wishes(builder, problem))


def pool_problem(request: PlanRequest) -> PoolProblem:
    """What a pooling, or the gradient of one, computes."""
    signature = request.signature
    result, source = signature.outputs[0], signature.inputs[0]
    kernel = signature.ints("kernel")
    rank = min(len(kernel), len(result.shape))
    batch, channels, field = _split_shape(result, rank)
    problem = PoolProblem(
        batch,
        channels,
        field,
        _split_shape(source, rank)[2],
        kernel[-rank:],
        result.dtype,
        is_max=signature.kind.startswith("max"),
        is_grad=signature.kind.endswith("grad"),
    )
    group = _channels_together(problem, problem.source, request.inputs[0])
    return problem.with_group(group)


def _split_shape(tensor: TensorType, rank: int) -> tuple[int, int, tuple[int, ...]]:
    """Batch, channels and field; the last `rank` dimensions are the field."""
    before, field = tensor.shape[:-rank], tensor.shape[-rank:]
    channels = before[-1] if before else 1
    batch = tensor.num_elements // max(
        1, channels * TensorType(tensor.dtype, field).num_elements
    )
    return max(1, batch), max(1, channels), tuple(max(1, n) for n in field)


def _channels_together(
    problem: PoolProblem, field: tuple[int, ...], mapping: TileMapping | None
) -> int:
    """Channels that are adjacent in memory; as suits if nobody has laid them out."""
    if mapping is None:
        return min(problem.suitable_group, problem.channels)
    adjacency = mapping.layout.adjacency
    if adjacency.stride != math.prod(field):
        return 1
    return min(adjacency.group, problem.channels)


def _wishes(
    builder: PlanBuilder, problem: PoolProblem
) -> tuple[TileMapping | None, ...]:
    """A source nobody has laid out should have groups of channels that suit."""
    inputs = builder.request.inputs
    if inputs[0] is not None:
        return (None,) * len(inputs)
    tensor, tiles = builder.request.signature.inputs[0], builder.request.num_tiles
    group = min(problem.suitable_group, problem.channels)
    wish = _spread(builder, tensor, tiles, group, problem)
    return wish, *((None,) * (len(inputs) - 1))


def _used(builder: PlanBuilder, split: PoolSplit) -> TileVector:
    """1 on every tile that has something to do."""
    tiles = builder.request.num_tiles
    return TileVector.spread(split.num_tiles, split.num_tiles, tiles)


def _spread(
    builder: PlanBuilder,
    tensor: TensorType,
    num_tiles: int,
    group: int,
    problem: PoolProblem,
) -> TileMapping:
    """A field over so many tiles, `group` channels of each position together."""
    grain = tensor.dtype.num_bytes
    vector = TileVector.spread(
        tensor.num_bytes, num_tiles, builder.request.num_tiles, grain
    )
    axis = max(0, len(tensor.shape) - len(problem.field) - 1)
    order = Grouped(tensor.shape, axis, group, PoolTiles(num_tiles))
    return TileMapping(vector, Layout(order))


def _exchange_windows(
    builder: PlanBuilder, problem: PoolProblem, split: PoolSplit
) -> None:
    """Bring what windows read from wherever it lies."""
    needed = _used(builder, split).scaled(split.needed_bytes)
    mapping = builder.input_mapping(0).bytes_by_tile
    # Windows may skip elements, and tiles send no more than all of them receive.
    held = _limited(mapping.scaled(problem.num_sources), needed.total)
    run = split.positions[-1]
    _move(builder, "windows", held, needed, (problem.group, split.channel_group), run)


def _move(
    builder: PlanBuilder,
    name: str,
    sent: TileVector,
    received: TileVector,
    groups: tuple[int, int],
    run: int,
) -> None:
    """An exchange from groups of channels to others, `run` positions in a row.

    Groups arrive in messages of their own if others lie together; what comes channel
    by channel, less than a word at once, is sorted on the tile.
    """
    before, after = groups
    dtype = builder.request.signature.outputs[0].dtype
    together = math.gcd(before, after) * dtype.num_bytes
    first = builder.position
    if together < builder.chip.atomic_store_bytes:
        builder.move(f"{name}/exchange", sent, received, SHUFFLED_PIECE_BYTES)
        builder.local_copy(f"{name}/order", received, dtype, in_order=False)
    else:
        piece = together * (run if before == after else 1)
        builder.move(f"{name}/exchange", sent, received, piece)
    last = builder.position
    builder.hold(
        f"{name}/message", received, first, last, Category.MESSAGE, is_gathered=True
    )


def _move_gradient(builder: PlanBuilder, problem: PoolProblem) -> PoolProblem:
    """Bring the gradient to where the result of the forward pass lies."""
    gradient = builder.request.signature.inputs[0]
    together = _channels_together(problem, problem.field, builder.request.inputs[-1])
    split = find_pool_split(problem.forward.with_group(together), builder.chip)
    group = split.channel_group
    home = _spread(builder, gradient, split.num_tiles, group, problem).bytes_by_tile
    source = builder.input_mapping(0).bytes_by_tile
    run = split.positions[-1]
    _move(builder, "gradient", source, home, (problem.group, group), run)
    return problem.with_group(group)


def _plan_reduction(builder: PlanBuilder, problem: PoolProblem) -> OpPlan:
    """One window for each channel: the largest or the sum of the whole field."""
    result = builder.request.signature.outputs[0]
    count = problem.batch * problem.channels
    size, dtype = math.prod(problem.source), problem.dtype
    # Channels that lie together are reduced as vectors; groups must divide evenly.
    group = math.gcd(problem.group, count)
    shape, kept = (count // group, size, group), (True, False, True)
    operation = "MAX" if problem.is_max else "ADD"
    reduction = Reduction(
        operation, TensorType(dtype, shape), kept, keeps_type=problem.is_max
    )
    source = builder.input_mapping(0)
    target = add_reduction(builder, "reduce", reduction, source, result)
    return builder.finish([target, *_others(builder)], (None,))


def _plan_broadcast(builder: PlanBuilder) -> OpPlan:
    """The gradient of a mean: divided once, then copied to the whole field."""
    gradient = builder.request.signature.inputs[0]
    result = builder.request.signature.outputs[0]
    source, target = builder.input_mapping(0), builder.linear(result)
    # Divided before it is copied: there are fewer elements.
    add_binary(builder, "mul", gradient, source, "BroadcastScalar1D")
    size = gradient.dtype.num_bytes
    width = max(1, result.num_elements // max(1, gradient.num_elements))
    needs = target.bytes_by_tile.map(lambda n: ceil_div(n, width * size) * size)
    first = builder.move("gradient/multicast", source.bytes_by_tile, needs)
    builder.local_copy("broadcast", target.bytes_by_tile, result.dtype)
    builder.hold("gradient", needs, first)
    return builder.finish([target], (None,) * len(builder.request.inputs))


def _limited(vector: TileVector, total: int) -> TileVector:
    """Bytes sent when fewer than all are asked for."""
    whole = max(1, vector.total)
    return vector.map(lambda value: min(value, ceil_div(value * total, whole)))


def _others(builder: PlanBuilder) -> list[TileMapping]:
    return [builder.linear(t) for t in builder.request.signature.outputs[1:]]


def _codelet_name(signature: Signature) -> str:
    return "".join(part.title() for part in signature.kind.split("_"))


RULES: dict[str, Rule] = {
    **dict.fromkeys(("max_pool", "avg_pool"), plan_pool),
    **dict.fromkeys(("max_pool_grad", "avg_pool_grad"), plan_pool_grad),
}
