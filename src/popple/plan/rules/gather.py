"""Indexed reads and writes of table rows.

A table is cut by rows and by columns over the tiles. Every tile looks up its share of
the indices in its part; rows found go to the result's tiles, rows written into partial
tables are added up. `popple.plan.lookup` searches for the split.
"""

from __future__ import annotations

from popple.graph import Signature, TensorType
from popple.plan.builder import PlanBuilder, vertices
from popple.plan.codelets.elementwise import fill_cycles
from popple.plan.codelets.rates import multi_codelet
from popple.plan.codelets.sizes import REDUCE_CODE_BYTES
from popple.plan.lookup import (
    INDEX_BYTES,
    Lookup,
    Split,
    choose_split,
    lookup_cycles,
    share_of,
    sum_cycles,
)
from popple.plan.mapping import elements_by_tile
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping
from popple.program import Category, TileVector
from popple.units import ceil_div


def plan_gather(request: PlanRequest) -> OpPlan:
    """Multicast the indices, look them up everywhere, send the rows found."""
    builder = PlanBuilder(request, "gather")
    table, result = request.signature.inputs[0], request.signature.outputs[0]
    indices = _find_indices(request.signature)
    lookup = _make_lookup(table, result.num_elements, is_update=False)
    ranked = _rank_splits(builder, lookup)
    split = ranked[0][1]
    home = _table_mapping(builder, 0, split)
    target = builder.linear(result)
    first = _multicast_indices(builder, indices, lookup, split)
    if split.shares > 1:
        copies = _part_by_tile(builder, split, share_of(lookup, split).table_bytes)
        builder.move("table/multicast", home.bytes_by_tile, copies, is_shared=True)
        builder.hold("table", copies, builder.position - 1, builder.position)
    found = _add_lookup(builder, "popops::MultiSlice", lookup, split)
    builder.move("rows/exchange", *_row_traffic(home, target))
    _note_choice(builder, lookup, split)
    builder.hold("indices", _index_needs(builder, lookup, split), first, found)
    builder.hold("rows", _row_traffic(home, target)[0], found)
    wishes = _wish_table(request, home, 0)
    return builder.finish([target], wishes, runners_up=_runners_up(ranked))


def plan_scatter(request: PlanRequest) -> OpPlan:
    """Multicast indices and rows, write or add those that fall into a tile's part."""
    builder = PlanBuilder(request, "gather")
    signature, result = request.signature, request.signature.outputs[0]
    table_index = _find_table(signature)
    rows = _find_rows(signature, table_index)
    lookup = _make_lookup(result, signature.inputs[rows].num_elements, is_update=True)
    ranked = _rank_splits(builder, lookup)
    split = ranked[0][1]
    home = _table_mapping(builder, table_index, split)
    indices = _find_indices(signature)
    _start_table(builder, home, has_table=table_index is not None)
    first = _multicast_indices(builder, indices, lookup, split)
    needs = _row_needs(builder, lookup, split)
    builder.move("rows/multicast", builder.input_mapping(rows).bytes_by_tile, needs)
    last = _add_lookup(builder, "popops::MultiUpdateAdd", lookup, split)
    builder.hold("indices", _index_needs(builder, lookup, split), first, last)
    builder.hold("rows", needs, last - 1, last, Category.MESSAGE)
    if split.shares > 1:
        _add_up_partials(builder, lookup, split, home)
    _note_choice(builder, lookup, split)
    wishes = _wish_table(request, home, table_index)
    flops = signature.inputs[rows].num_elements * (signature.kind == "scatter_add")
    return builder.finish([home], wishes, flops, _runners_up(ranked))


def _add_up_partials(
    builder: PlanBuilder, lookup: Lookup, split: Split, home: TileMapping
) -> None:
    """Bring the partial tables of all shares of indices together."""
    share, fan_in = share_of(lookup, split), split.shares
    partials = _part_by_tile(builder, split, share.table_bytes)
    before = builder.position - 1
    message = home.bytes_by_tile.scaled(fan_in)
    builder.move("partials/exchange", partials, message)
    builder.hold("partials", partials, before, before + 1)
    workers, dtype = builder.num_workers, lookup.dtype
    builder.elementwise(
        "sum",
        multi_codelet("popops::ReducePartials<ADD", dtype, REDUCE_CODE_BYTES, 20),
        home,
        builder.request.signature.outputs[0],
        lambda n: sum_cycles(n, fan_in, dtype, workers),
        flops_per_element=fan_in,
    )
    last = builder.position - 1
    builder.hold("partials/message", message, last - 1, last, Category.MESSAGE)


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


def _make_lookup(table: TensorType, num_elements: int, is_update: bool) -> Lookup:
    """The first dimension of the table counts its rows."""
    rows = table.shape[0] if table.shape else 1
    columns = max(1, table.num_elements // max(1, rows))
    looked_up = max(1, ceil_div(num_elements, columns))
    return Lookup(max(1, rows), columns, looked_up, table.dtype, is_update)


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
    return TileMapping(vector, f"table[{split.rows}x{split.columns}]")


def _rank_splits(builder: PlanBuilder, lookup: Lookup) -> tuple[tuple[int, Split], ...]:
    proportion = builder.request.options.memory_proportion
    return choose_split(lookup, builder.chip, proportion)


def _part_by_tile(builder: PlanBuilder, split: Split, num_bytes: int) -> TileVector:
    """So many bytes on every tile that has something to do."""
    tiles = builder.request.num_tiles
    used = TileVector.spread(split.num_tiles, split.num_tiles, tiles)
    return used.scaled(num_bytes)


def _index_needs(builder: PlanBuilder, lookup: Lookup, split: Split) -> TileVector:
    num_bytes = INDEX_BYTES * share_of(lookup, split).num_indices
    return _part_by_tile(builder, split, num_bytes)


def _multicast_indices(
    builder: PlanBuilder, indices: int, lookup: Lookup, split: Split
) -> int:
    source = builder.input_mapping(indices).bytes_by_tile
    needs = _index_needs(builder, lookup, split)
    return builder.move("indices/multicast", source, needs, is_shared=True)


def _row_needs(builder: PlanBuilder, lookup: Lookup, split: Split) -> TileVector:
    """Every tile is sent its columns of the rows of its share."""
    share = share_of(lookup, split)
    return _part_by_tile(builder, split, share.num_indices * share.row_bytes)


def _row_traffic(
    home: TileMapping, target: TileMapping
) -> tuple[TileVector, TileVector]:
    """Rows found are sent in equal shares and received where the result lies."""
    total, tiles = target.bytes_by_tile.total, max(1, home.bytes_by_tile.num_nonzero)
    share = ceil_div(total, tiles)
    sent = home.bytes_by_tile.map(lambda held: share if held else 0)
    return sent, target.bytes_by_tile


def _add_lookup(builder: PlanBuilder, name: str, lookup: Lookup, split: Split) -> int:
    codelet = multi_codelet(name, lookup.dtype, 350, 28)
    used = _part_by_tile(builder, split, 1)
    cycles = lookup_cycles(lookup, split, builder.num_workers)
    return builder.compute(
        "lookup", vertices(codelet, used, lambda _: cycles, num_edges=3)
    )


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


def _note_choice(builder: PlanBuilder, lookup: Lookup, split: Split) -> None:
    builder.note("table split", split)
    builder.note("lookup cycles", lookup_cycles(lookup, split, builder.num_workers))


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
