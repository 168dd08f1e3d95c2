"""Indexed reads and writes of table rows, with a small search for the split.

As PopLibs popops does it, a table is cut by rows and by columns over the tiles, every
tile looks up all indices in its own part, and the rows found go to the result's tiles.
Few columns a tile make rows cheap to look up; few row ranges make misses rare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from popple.graph import Signature, TensorType
from popple.plan.builder import PlanBuilder, vertices
from popple.plan.codelets.elementwise import fill_cycles
from popple.plan.codelets.gather import multi_slice_cycles, multi_update_cycles
from popple.plan.codelets.rates import DATA_PATH_BYTES, multi_codelet
from popple.plan.mapping import elements_by_tile
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping
from popple.program import Category, TileVector
from popple.units import ceil_div

INDEX_BYTES = 4


@dataclass(frozen=True)
class Lookup:
    """`num_rows` rows of a table of `table_rows` rows of `columns` elements."""

    table_rows: int
    columns: int
    num_rows: int
    element_bytes: int
    is_update: bool = False


@dataclass(frozen=True)
class Split:
    """How the table is cut: `rows` ranges of rows times `columns` of columns."""

    rows: int
    columns: int

    @property
    def num_tiles(self) -> int:
        """Tiles that hold a part."""
        return self.rows * self.columns


def estimate_cycles(lookup: Lookup, split: Split, num_workers: int) -> int:
    """Tile cycles to look up every index in one part of the table.

    Indices are taken to be spread evenly, so a part finds its share of them, rounded
    up, and misses the others.
    """
    found = ceil_div(lookup.num_rows, split.rows)
    missed = lookup.num_rows - found
    columns = ceil_div(lookup.columns, split.columns)
    if lookup.is_update:
        size = lookup.element_bytes
        return multi_update_cycles(found, missed, columns, size, num_workers)
    return multi_slice_cycles(found, missed, columns, num_workers)


def list_splits(lookup: Lookup, num_tiles: int) -> Iterator[Split]:
    """Column cuts in powers of two down to one word; rows take the tiles left."""
    words = ceil_div(lookup.columns * lookup.element_bytes, DATA_PATH_BYTES)
    columns = 1
    while columns <= max(1, min(words, num_tiles)):
        yield Split(max(1, min(num_tiles // columns, lookup.table_rows)), columns)
        columns *= 2


def choose_split(
    lookup: Lookup, num_tiles: int, num_workers: int
) -> list[tuple[int, Split]]:
    """All splits with their cycles, best first; ties go to fewer column cuts."""
    costs = [
        (estimate_cycles(lookup, split, num_workers), split.columns, split)
        for split in list_splits(lookup, num_tiles)
    ]
    return [(cycles, split) for cycles, _, split in sorted(costs, key=lambda c: c[:2])]


def plan_gather(request: PlanRequest) -> OpPlan:
    """Multicast the indices, look them up everywhere, send the rows found."""
    builder = PlanBuilder(request, "gather")
    table, result = request.signature.inputs[0], request.signature.outputs[0]
    indices = _find_indices(request.signature)
    lookup = _make_lookup(table, result.num_elements, is_update=False)
    ranked = choose_split(lookup, request.num_tiles, builder.num_workers)
    home = _table_mapping(builder, 0, ranked[0][1])
    target = builder.linear(result)
    first = _multicast_indices(builder, indices, home)
    found = _add_lookup(builder, "popops::MultiSlice", home, ranked[0][0])
    builder.move("rows/exchange", *_row_traffic(home, target))
    _note_choice(builder, ranked)
    builder.hold("indices", _index_needs(builder, indices, home), first, found)
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
    ranked = choose_split(lookup, request.num_tiles, builder.num_workers)
    home = _table_mapping(builder, table_index, ranked[0][1])
    indices = _find_indices(signature)
    _start_table(builder, home, has_table=table_index is not None)
    first = _multicast_indices(builder, indices, home)
    needs = _row_needs(home, signature.inputs[rows], ranked[0][1])
    builder.move("rows/multicast", builder.input_mapping(rows).bytes_by_tile, needs)
    last = _add_lookup(builder, "popops::MultiUpdateAdd", home, ranked[0][0])
    builder.hold("indices", _index_needs(builder, indices, home), first)
    builder.hold("rows", needs, last - 1, last, Category.MESSAGE)
    _note_choice(builder, ranked)
    wishes = _wish_table(request, home, table_index)
    flops = signature.inputs[rows].num_elements * (signature.kind == "scatter_add")
    return builder.finish([home], wishes, flops, _runners_up(ranked))


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
    return Lookup(max(1, rows), columns, looked_up, table.dtype.num_bytes, is_update)


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


def _index_needs(builder: PlanBuilder, indices: int, home: TileMapping) -> TileVector:
    num_bytes = INDEX_BYTES * builder.request.signature.inputs[indices].num_elements
    return home.bytes_by_tile.map(lambda held: num_bytes if held else 0)


def _multicast_indices(builder: PlanBuilder, indices: int, home: TileMapping) -> int:
    source = builder.input_mapping(indices).bytes_by_tile
    needs = _index_needs(builder, indices, home)
    return builder.move("indices/multicast", source, needs, is_shared=True)


def _row_needs(home: TileMapping, rows: TensorType, split: Split) -> TileVector:
    """Every tile is sent its columns of every row."""
    num_bytes = ceil_div(rows.num_bytes, split.columns)
    return home.bytes_by_tile.map(lambda held: num_bytes if held else 0)


def _row_traffic(
    home: TileMapping, target: TileMapping
) -> tuple[TileVector, TileVector]:
    """Rows found are sent in equal shares and received where the result lies."""
    total, tiles = target.bytes_by_tile.total, max(1, home.bytes_by_tile.num_nonzero)
    share = ceil_div(total, tiles)
    sent = home.bytes_by_tile.map(lambda held: share if held else 0)
    return sent, target.bytes_by_tile


def _add_lookup(builder: PlanBuilder, name: str, home: TileMapping, cycles: int) -> int:
    dtype = builder.request.signature.outputs[0].dtype
    codelet = multi_codelet(name, dtype, 350, 28)
    group = vertices(codelet, home.bytes_by_tile, lambda _: cycles, num_edges=3)
    return builder.compute("lookup", group)


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


def _note_choice(builder: PlanBuilder, ranked: list[tuple[int, Split]]) -> None:
    cycles, split = ranked[0]
    builder.note("table split", f"{split.rows} rows x {split.columns} columns")
    builder.note("lookup cycles", cycles)


def _runners_up(ranked: list[tuple[int, Split]]) -> tuple[tuple[str, int], ...]:
    return tuple(
        (f"{split.rows} rows x {split.columns} columns", cycles)
        for cycles, split in ranked[1:4]
    )


RULES: dict[str, Rule] = {
    "gather": plan_gather,
    "scatter": plan_scatter,
    "scatter_add": plan_scatter,
    "one_hot": plan_one_hot,
}
