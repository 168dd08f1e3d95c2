"""Indexed reads and writes of table rows.

A table is cut by rows and by columns over the tiles. Every tile looks up its share of
the indices in its part; of the candidates of all ranges of rows a second stage takes
the right one. Rows written into partial tables are added up, as floats, and then added
to the table. `popple.plan.blocks.lookup` searches for the split.
"""

from __future__ import annotations

from popple.graph import DType, Signature, TensorType
from popple.plan.blocks.lookup import (
    INDEX_BYTES,
    Lookup,
    Share,
    Split,
    choose_splits,
    share_of,
)
from popple.plan.blocks.tile_reduction import Arithmetic, Stretch, tile_cycles
from popple.plan.builder import PlanBuilder
from popple.plan.codelets.elementwise import cast_cycles, fill_cycles
from popple.plan.codelets.gather import multi_slice_cycles, multi_update_cycles
from popple.plan.codelets.rates import multi_codelet, worker_codelet
from popple.plan.codelets.update import PASSES, scaled_add_cycles
from popple.plan.layout import Layout, Named
from popple.plan.mapping import elements_by_tile
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping
from popple.program import Category, TileVector, VertexGroup
from popple.units import ceil_div

REARRANGED_ROW_RANGES = 4
"""Ranges of rows from which on rows written are put in order before they are sent to
every range: slicesBroadcastDestRearrangeThreshold of PopLibs popops."""


def plan_gather(request: PlanRequest) -> OpPlan:
    """Multicast the indices, look them up everywhere, send the rows found."""
    builder = PlanBuilder(request, "gather")
    table, result = request.signature.inputs[0], request.signature.outputs[0]
    lookup = _make_lookup(table, result.num_elements)
    ranked = _rank_splits(builder, lookup)
    split = ranked[0][1]
    share = share_of(lookup, split)
    home = _table_mapping(builder, 0, split)
    target = builder.linear(result)
    first = _multicast_indices(builder, _find_indices(request.signature), split, share)
    if split.shares > 1:
        size = share.elements * lookup.dtype.num_bytes
        # Tiles with other shares of the indices read the same part of the table.
        copies = _used(builder, split).scaled(size)
        builder.move("table/multicast", home.bytes_by_tile, copies, is_shared=True)
        last = builder.position
        builder.hold("table", copies, last - 1, last, is_gathered=True)
    _add_slices(builder, "candidates", lookup, split, share.num_indices)
    builder.hold("indices", _index_needs(builder, split, share), first)
    if split.rows > 1:
        _add_second_stage(builder, lookup, split, share)
    builder.move("rows/exchange", *_row_traffic(home, target))
    builder.hold("rows", _row_traffic(home, target)[0], builder.position - 2)
    builder.note("table split", split)
    wishes = _wish_table(request, home, 0)
    return builder.finish([target], wishes, runners_up=_runners_up(ranked))


def plan_scatter(request: PlanRequest) -> OpPlan:
    """Multicast indices and rows, write or add those that fall into a tile's part."""
    builder = PlanBuilder(request, "gather")
    signature, result = request.signature, request.signature.outputs[0]
    table_index = _find_table(signature)
    rows = _find_rows(signature, table_index)
    num_elements = signature.inputs[rows].num_elements
    lookup = _make_lookup(result, num_elements)
    ranked = _rank_splits(builder, lookup)
    split = ranked[0][1]
    share = share_of(lookup, split)
    home = _table_mapping(builder, table_index, split)
    _start_table(builder, home, has_table=table_index is not None)
    source = builder.input_mapping(rows).bytes_by_tile
    source = _order_rows(builder, lookup, split, share, source)
    _add_updates(builder, lookup, split, share, source)
    if split.shares > 1:
        _add_up_partials(builder, lookup, split, share, home)
    builder.note("table split", split)
    wishes = _wish_table(request, home, table_index)
    flops = num_elements * (signature.kind == "scatter_add")
    return builder.finish([home], wishes, flops, _runners_up(ranked))


def _add_slices(
    builder: PlanBuilder, name: str, lookup: Lookup, split: Split, num_indices: int
) -> None:
    """Rows are copied by their indices, which the workers of a tile share."""
    # A row is copied by one worker: more workers than rows have nothing to do.
    workers = min(builder.num_workers, num_indices)
    columns = share_of(lookup, split).columns
    cycles = multi_slice_cycles(ceil_div(num_indices, workers), columns)
    codelet = worker_codelet("popops::MultiSlice", lookup.dtype, 350, 28)
    used = _used(builder, split)
    group = VertexGroup(codelet, used.scaled(workers), used.scaled(cycles), None, 3)
    builder.compute(name, group)


def _add_second_stage(
    builder: PlanBuilder, lookup: Lookup, split: Split, share: Share
) -> None:
    """Of the candidates of all ranges of rows, a tile picks those of its indices."""
    used, row_bytes = _used(builder, split), share.columns * lookup.dtype.num_bytes
    candidates = used.scaled(share.num_indices * row_bytes)
    together = used.scaled(split.rows * share.owned_rows * row_bytes)
    before = builder.position - 1
    piece = share.owned_rows * row_bytes
    moved = builder.move("candidates/exchange", candidates, together, piece)
    builder.hold("candidates", candidates, before, moved)
    _add_slices(builder, "rows", lookup, split, share.owned_rows)
    builder.hold("candidates/message", together, moved, category=Category.MESSAGE)


def _order_rows(
    builder: PlanBuilder, lookup: Lookup, split: Split, share: Share, source: TileVector
) -> TileVector:
    """Bring rows to tiles that own them, and make them floats for partial tables."""
    # Many rows may be added to one place; halves would lose them (PopLibs sums floats).
    is_cast = split.shares > 1 and lookup.dtype is not DType.F32
    if not is_cast and split.rows < REARRANGED_ROW_RANGES:
        return source
    used, owned = _used(builder, split), share.owned_rows * share.columns
    held = used.scaled(owned * lookup.dtype.num_bytes)
    first = builder.move("rows/exchange", source, held)
    if not is_cast:
        return held
    workers = builder.num_workers
    cycles = cast_cycles(lookup.dtype, DType.F32, owned, workers)
    _add_pass(builder, "rows/cast", "popops::Cast1D<float", lookup, used, cycles)
    builder.hold("rows", held, first)
    return used.scaled(owned * DType.F32.num_bytes)


def _add_updates(
    builder: PlanBuilder, lookup: Lookup, split: Split, share: Share, source: TileVector
) -> None:
    """Every range of rows sees all rows of its indices; one worker adds them."""
    dtype = DType.F32 if split.shares > 1 else lookup.dtype
    used, workers = _used(builder, split), builder.num_workers
    if split.shares > 1:
        cycles = fill_cycles(dtype, share.elements, workers)
        _add_pass(builder, "partials/zero", "popops::Fill", lookup, used, cycles)
    indices = _find_indices(builder.request.signature)
    first = _multicast_indices(builder, indices, split, share)
    needs = used.scaled(share.num_indices * share.columns * dtype.num_bytes)
    builder.move("rows/multicast", source, needs)
    cycles = multi_update_cycles(share.num_indices, share.columns, dtype)
    codelet = worker_codelet("popops::MultiUpdateAdd", dtype, 350, 28)
    group = VertexGroup(codelet, used, used.scaled(cycles), None, 3)
    last = builder.compute("update", group)
    builder.hold("indices", _index_needs(builder, split, share), first)
    builder.hold(
        "rows/message", needs, last - 1, last, Category.MESSAGE, is_gathered=True
    )


def _add_up_partials(
    builder: PlanBuilder, lookup: Lookup, split: Split, share: Share, home: TileMapping
) -> None:
    """Bring the partial tables of all shares of indices together, add their sum."""
    used, workers, fan_in = _used(builder, split), builder.num_workers, split.shares
    partials = used.scaled(share.elements * DType.F32.num_bytes)
    message = used.scaled(fan_in * share.owned_elements * DType.F32.num_bytes)
    before = builder.position - 1
    builder.move("partials/exchange", partials, message)
    builder.hold("partials", partials, before, before + 1)
    floats = Arithmetic(DType.F32, DType.F32, DType.F32)
    stretch = Stretch(1, share.owned_elements, fan_in)
    cycles = tile_cycles(stretch, floats, workers)
    _add_pass(builder, "sum", "popops::Reduce<ADD", lookup, used, cycles)
    last = builder.position - 1
    builder.hold("partials/message", message, last - 1, last, Category.MESSAGE)
    _add_sum(builder, lookup, share, used)


def _add_sum(
    builder: PlanBuilder, lookup: Lookup, share: Share, used: TileVector
) -> None:
    """Add the sum to the table, which is made a float and back."""
    workers, size = builder.num_workers, share.owned_elements
    is_cast = lookup.dtype is not DType.F32
    if is_cast:
        cycles = cast_cycles(lookup.dtype, DType.F32, size, workers)
        _add_pass(builder, "table/cast", "popops::Cast1D<float", lookup, used, cycles)
    (_, table), *_ = PASSES["accumulate"]
    cycles = scaled_add_cycles(table, DType.F32, size, workers)
    _add_pass(builder, "add", "popops::ScaledAdd", lookup, used, cycles)
    if is_cast:
        cycles = cast_cycles(DType.F32, lookup.dtype, size, workers)
        _add_pass(builder, "table/cast-back", "popops::Cast1D", lookup, used, cycles)


def _add_pass(
    builder: PlanBuilder,
    name: str,
    codelet: str,
    lookup: Lookup,
    used: TileVector,
    cycles: int,
) -> None:
    """One vertex of all workers on every tile that has something to do."""
    group = VertexGroup(
        multi_codelet(codelet, lookup.dtype, 400, 20), used, used.scaled(cycles), None
    )
    builder.compute(name, group)


def plan_one_hot(request: PlanRequest) -> OpPlan:
    """Zeros, then a one at every index that falls on the tile."""
    builder = PlanBuilder(request, "gather")
    indices, result = request.signature.inputs[0], request.signature.outputs[0]
    target = builder.linear(result)
    width = max(1, result.num_elements // max(1, indices.num_elements))
    needs = elements_by_tile(target, result).map(
        lambda n: INDEX_BYTES * ceil_div(n, width)
    )
    source = builder.input_mapping(0).bytes_by_tile
    first = builder.move("indices/exchange", source, needs)
    workers = builder.num_workers
    builder.elementwise(
        "encode",
        multi_codelet("popops::EncodeOneHot", result.dtype, 280, 20),
        target,
        result,
        lambda n: fill_cycles(result.dtype, n, workers) + 8 * ceil_div(n, width),
        flops_per_element=0,
        num_edges=2,
    )
    builder.hold("indices", needs, first)
    return builder.finish([target], (None,))


def _make_lookup(table: TensorType, num_elements: int) -> Lookup:
    """The first dimension of the table counts its rows."""
    rows = table.shape[0] if table.shape else 1
    columns = max(1, table.num_elements // max(1, rows))
    looked_up = max(1, ceil_div(num_elements, columns))
    return Lookup(max(1, rows), columns, looked_up, table.dtype)


def _find_indices(signature: Signature) -> int:
    """Position of the smallest integer input behind the first."""
    inputs = signature.inputs
    others = range(1, len(inputs))
    return min(others, key=lambda i: (inputs[i].dtype.is_float, inputs[i].num_bytes))


def _find_table(signature: Signature) -> int | None:
    """Position of the table that is updated, or None if it starts from zeros."""
    result = signature.outputs[0]
    return 0 if signature.inputs[0].shape == result.shape else None


def _find_rows(signature: Signature, table: int | None) -> int:
    """Position of the rows written: the largest input but table and indices."""
    skipped = {table, _find_indices(signature)}
    others = [i for i in range(len(signature.inputs)) if i not in skipped]
    # Some ops write one number instead of rows: the index is then all there is.
    others = others or [len(signature.inputs) - 1]
    return max(others, key=lambda i: signature.inputs[i].num_bytes)


def _table_mapping(
    builder: PlanBuilder, position: int | None, split: Split
) -> TileMapping:
    """Where the table lies; a new one is cut evenly over the split's tiles."""
    signature, tiles = builder.request.signature, builder.request.num_tiles
    table = signature.outputs[0] if position is None else signature.inputs[position]
    given = None if position is None else builder.request.inputs[position]
    if given is not None:
        return given
    vector = TileVector.spread(
        table.num_bytes, split.num_tiles, tiles, table.dtype.num_bytes
    )
    return TileMapping(vector, Layout(Named("table", (split.rows, split.columns))))


def _rank_splits(builder: PlanBuilder, lookup: Lookup) -> tuple[tuple[int, Split], ...]:
    proportion = builder.request.options.memory_proportion
    return choose_splits(lookup, builder.chip, proportion)


def _used(builder: PlanBuilder, split: Split) -> TileVector:
    """1 on every tile that has something to do."""
    tiles = builder.request.num_tiles
    return TileVector.spread(split.num_tiles, split.num_tiles, tiles)


def _index_needs(builder: PlanBuilder, split: Split, share: Share) -> TileVector:
    return _used(builder, split).scaled(INDEX_BYTES * share.num_indices)


def _multicast_indices(
    builder: PlanBuilder, indices: int, split: Split, share: Share
) -> int:
    source = builder.input_mapping(indices).bytes_by_tile
    needs = _index_needs(builder, split, share)
    return builder.move("indices/multicast", source, needs, is_shared=True)


def _row_traffic(
    home: TileMapping, target: TileMapping
) -> tuple[TileVector, TileVector]:
    """Rows found are sent in equal shares and received where the result lies."""
    total, tiles = target.bytes_by_tile.total, max(1, home.bytes_by_tile.num_nonzero)
    share = ceil_div(total, tiles)
    sent = home.bytes_by_tile.map(lambda held: share if held else 0)
    return sent, target.bytes_by_tile


def _start_table(builder: PlanBuilder, home: TileMapping, has_table: bool) -> None:
    """A copy of the table to update, or zeros."""
    result, workers = builder.request.signature.outputs[0], builder.num_workers
    if has_table:
        builder.local_copy("table", home.bytes_by_tile, result.dtype)
        return
    builder.elementwise(
        "zero",
        multi_codelet("popops::Fill", result.dtype, 120, 12),
        home,
        result,
        lambda n: fill_cycles(result.dtype, n, workers),
        flops_per_element=0,
        num_edges=1,
    )


def _wish_table(
    request: PlanRequest, home: TileMapping, table: int | None
) -> tuple[TileMapping | None, ...]:
    wishes: list[TileMapping | None] = [None] * len(request.inputs)
    if table is not None and request.inputs[table] is None:
        wishes[table] = home
    return tuple(wishes)


def _runners_up(
    ranked: tuple[tuple[int, Split], ...],
) -> tuple[tuple[str, int], ...]:
    return tuple((str(split), cycles) for cycles, split in ranked[1:4])


RULES: dict[str, Rule] = {
    "gather": plan_gather,
    "scatter": plan_scatter,
    "scatter_add": plan_scatter,
    "one_hot": plan_one_hot,
}
