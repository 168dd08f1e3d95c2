"""Linear mappings follow Poplar's rule; views keep, derive or cancel layouts."""

import math
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from popple.graph import DType, Signature, TensorType
from popple.plan import OpPlan, TileMapping
from popple.plan.layout import Dims, Grouped, Layout, Named, PoolTiles, permuted
from popple.plan.mapping import (
    dithered_tile,
    has_aliases,
    is_colocated,
    linear_mapping,
    mapping_like,
    rescaled,
    source_mapping,
    spread_mapping,
    view_mapping,
)
from popple.plan.opplan import Compute, Move
from popple.program import TileVector
from popple.program import linear_mapping as poplar_mapping
from tests.plan.conv.machines import flat_steps, plan_matmul
from tests.plan.layout.chains import Link, Permute, Slice, chains, detours, indices_of
from tests.plan.machines import bow, bow_with_tiles
from tests.plan.signatures import f16, f32, make

CHIP = bow().chip
SIZE = 480
BLOCKS = Layout(Named("blocks"))
VECTORS = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 1000)), min_size=1).map(
    TileVector.of
)


@pytest.mark.parametrize(
    ("shape", "used"),
    [((900, 600), 1468), ((600, 300), 1452), ((40, 50), 59), ((50,), 1)],
)
def test_linear_uses_the_tiles_poplar_would(shape: tuple[int, ...], used: int) -> None:
    mapping = linear_mapping(f32(*shape), CHIP)
    assert mapping.bytes_by_tile.num_nonzero == used


@given(
    st.integers(0, 2_000_000),
    st.sampled_from([DType.F32, DType.F16, DType.U8]),
    st.sampled_from([4, 1472]),
)
def test_linear_has_the_shares_of_poplar(
    count: int, dtype: DType, num_tiles: int
) -> None:
    # Same shares on as many tiles; only their order differs (larger ones first). The
    # last word may be partly empty, which falls on another tile then.
    chip = bow_with_tiles(num_tiles).chip
    ours = linear_mapping(TensorType(dtype, (count,)), chip).bytes_by_tile
    theirs = poplar_mapping(count, dtype.num_bytes, num_tiles)
    assert ours.total == theirs.total
    assert ours.num_nonzero == theirs.num_nonzero
    assert abs(ours.maximum - theirs.maximum) < 8


def test_linear_needs_few_runs_on_any_number_of_tiles() -> None:
    for num_tiles in (1472, 14720):
        mapping = linear_mapping(f32(1000, 1001), bow_with_tiles(num_tiles).chip)
        assert len(mapping.bytes_by_tile.runs) <= 4


def test_rotated_linear_differs_from_the_plain_one() -> None:
    plain, rotated = linear_mapping(f32(64), CHIP), linear_mapping(f32(64), CHIP, 10)
    assert rotated.bytes_by_tile[10] == plain.bytes_by_tile[0] == 128
    assert not is_colocated(plain, f32(64), rotated, f32(64))


def test_spread_keeps_enough_together() -> None:
    # 64 floats in words of 2: 8 on a tile at least.
    assert spread_mapping(f32(64), CHIP, 2, 8).bytes_by_tile.runs[0] == (8, 32)
    assert spread_mapping(f32(64), CHIP, 2, 2).bytes_by_tile.num_nonzero == 32


@given(VECTORS, st.integers(0, 10_000))
def test_rescaled_keeps_the_sum_and_stays_short(vector: TileVector, count: int) -> None:
    result = rescaled(vector, 2 * count, 2)
    assert result.total == 2 * count
    assert len(result) == len(vector)
    assert len(result.runs) <= len(vector.runs) + 3


def test_half_of_a_float_tensor_is_colocated_with_it() -> None:
    mapping = linear_mapping(f32(100, 100), CHIP)
    half = mapping_like(mapping, f16(100, 100))
    assert half.bytes_by_tile.total == 20_000
    assert is_colocated(mapping, f32(100, 100), half, f16(100, 100))


def permute(shape: tuple[int, ...], order: tuple[int, ...]) -> Signature:
    after = tuple(shape[dim] for dim in order)
    return make("permute", [f32(*shape)], [f32(*after)], order=order)


def test_reshape_keeps_the_mapping() -> None:
    mapping = linear_mapping(f32(6, 4), CHIP)
    assert view_mapping(make("reshape", [f32(6, 4)], [f32(24)]), mapping) is mapping


def test_permute_is_not_colocated_with_its_source() -> None:
    mapping = linear_mapping(f32(6, 4), CHIP)
    turned = view_mapping(permute((6, 4), (1, 0)), mapping)
    assert turned.bytes_by_tile == mapping.bytes_by_tile
    assert turned.layout == mapping.layout.viewed(permuted((6, 4), (1, 0)))
    assert turned.layout != mapping.layout


def test_permute_of_a_dimension_of_one_is_free_of_effect() -> None:
    mapping = linear_mapping(f32(6, 1, 4), CHIP)
    assert view_mapping(permute((6, 1, 4), (1, 0, 2)), mapping) == mapping


@given(st.permutations(range(4)))
def test_permute_and_its_inverse_cancel(order: list[int]) -> None:
    mapping = linear_mapping(f32(2, 3, 4, 5), CHIP)
    step = permute((2, 3, 4, 5), tuple(order))
    turned = view_mapping(step, mapping)
    back = tuple(order.index(dim) for dim in range(4))
    assert view_mapping(permute(step.outputs[0].shape, back), turned) == mapping


@given(st.permutations(range(3)))
def test_a_wish_for_a_view_becomes_one_for_its_source(order: list[int]) -> None:
    wish = TileMapping(TileVector.spread(240, 60, CHIP.num_tiles), BLOCKS)
    step = permute((3, 4, 5), tuple(order))
    source = source_mapping(step, wish)
    assert source is not None
    assert view_mapping(step, source) == wish


def test_a_wish_for_a_slice_says_nothing_about_its_source() -> None:
    wish = linear_mapping(f32(2, 4), CHIP)
    assert source_mapping(make("slice", [f32(6, 4)], [f32(2, 4)]), wish) is None


@pytest.mark.parametrize("first_tile", [0, 1470])
def test_leading_slice_lies_on_the_tiles_of_its_rows(first_tile: int) -> None:
    # 8 rows of 128 bytes, one on each tile: rows 2 to 4 are on the 3 tiles from 2 on,
    # counted from the first tile and past the last one to the front again.
    mapping = linear_mapping(f32(8, 32), CHIP, first_tile)
    part = view_mapping(make("slice", [f32(8, 32)], [f32(3, 32)], start=2), mapping)
    tiles = [(first_tile + row) % CHIP.num_tiles for row in range(8)]
    assert [part.bytes_by_tile[t] for t in tiles] == [0, 0, 128, 128, 128, 0, 0, 0]


def test_leading_slice_may_begin_inside_a_tile() -> None:
    # 12 rows of 64 bytes, two on each of 6 tiles; rows 1 and 2 are on two of them.
    mapping = linear_mapping(f32(12, 16), CHIP)
    part = view_mapping(make("slice", [f32(12, 16)], [f32(2, 16)], start=1), mapping)
    assert part.bytes_by_tile.runs[:2] == ((2, 64), (1470, 0))


def test_slice_of_unknown_place_takes_its_share_of_every_tile() -> None:
    mapping = linear_mapping(f32(64, 32), CHIP)
    part = view_mapping(make("slice", [f32(64, 32)], [f32(64, 16)]), mapping)
    assert part.bytes_by_tile.runs[0] == (64, 64)


def test_broadcast_shares_memory() -> None:
    mapping = linear_mapping(f32(1, 32), CHIP)
    wide = view_mapping(make("broadcast", [f32(1, 32)], [f32(9, 32)]), mapping)
    assert wide.bytes_by_tile == mapping.bytes_by_tile
    assert has_aliases(wide, f32(9, 32))


def test_a_square_turned_is_not_the_square() -> None:
    mapping = linear_mapping(f32(8, 8), CHIP)
    assert view_mapping(permute((8, 8), (1, 0)), mapping) != mapping


def cut(
    mapping: TileMapping, shape: Dims, dim: int, start: int, size: int
) -> tuple[TileMapping, Dims]:
    """The mapping and the shape of a part along one dimension."""
    after = (*shape[:dim], size, *shape[dim + 1 :])
    step = make("slice", [f16(*shape)], [f16(*after)], dim=dim, start=start)
    return view_mapping(step, mapping), after


def test_rows_of_columns_are_columns_of_rows() -> None:
    # 16 rows of 64 bytes, two on each of 8 tiles: rows 4 to 8 are on tiles 2 and 3.
    whole = linear_mapping(f16(16, 32), CHIP)
    rows, _ = cut(*cut(whole, (16, 32), 0, 4, 4), 1, 8, 16)
    columns, _ = cut(*cut(whole, (16, 32), 1, 8, 16), 0, 4, 4)
    assert rows == columns
    assert rows.bytes_by_tile.runs[:3] == ((2, 0), (2, 64), (1468, 0))


def test_an_index_of_the_last_dimension_is_no_row() -> None:
    # A column of a square has the shape of a row, but some of every tile.
    square = linear_mapping(f32(32, 32), CHIP)
    column = make("slice", [f32(32, 32)], [f32(32)], dim=1, start=3)
    row = make("slice", [f32(32, 32)], [f32(32)], dim=0, start=3)
    assert view_mapping(column, square).bytes_by_tile.runs[0] == (32, 4)
    assert view_mapping(row, square).bytes_by_tile.runs[:2] == ((3, 0), (1, 128))


def test_a_slice_of_what_is_repeated_is_in_memory_once() -> None:
    mapping = linear_mapping(f32(1, 32), CHIP)
    wide = view_mapping(make("broadcast", [f32(1, 32)], [f32(9, 32)]), mapping)
    part = view_mapping(make("slice", [f32(9, 32)], [f32(3, 32)], start=2), wide)
    assert part.bytes_by_tile == mapping.bytes_by_tile
    assert has_aliases(part, f32(3, 32))


def test_slices_of_slices_are_not_rounded_in_between() -> None:
    # Of 7 elements on each of 96 tiles, every tile has a share of 96 of the 672.
    order = Grouped((96, 7), 1, 7, PoolTiles(96))
    vector = TileVector.spread(96 * 14, 96, CHIP.num_tiles, 14)
    whole = TileMapping(vector, Layout(order))
    once, _ = cut(whole, (96, 7), 1, 0, 1)
    part, shape = whole, (96, 7)
    for size in (5, 3, 2, 1):
        part, shape = cut(part, shape, 1, 0, size)
    assert part == once
    assert once.bytes_by_tile.runs[0] == (96, 2)


def test_a_part_of_a_value_like_a_view_lies_like_that_part_of_the_view() -> None:
    whole = linear_mapping(f16(16, 64), CHIP)
    rows, shape = cut(whole, (16, 64), 0, 4, 8)
    wide = mapping_like(rows, f32(*shape))
    step = make("slice", [f32(8, 64)], [f32(2, 64)], dim=0, start=3)
    one, _ = cut(rows, shape, 0, 3, 2)
    assert view_mapping(step, wide).bytes_by_tile == one.bytes_by_tile.scaled(2)


def product_after_slices(*sizes: int) -> OpPlan:
    """A product of the first columns of another one's result, cut off in turn."""
    mapping = plan_matmul((1024, 512), (512, 1536)).outputs[0]
    shape: Dims = (1024, 1536)
    for size in sizes:
        mapping, shape = cut(mapping, shape, 1, 0, size)
    return plan_matmul(shape, (512, 768), inputs=(mapping, None))


def test_a_product_costs_the_same_after_any_number_of_slices() -> None:
    once = product_after_slices(512)
    # Rows are adjacent, columns are summed: blocks are transposed on the way.
    names = [s.name for s in flat_steps(once.steps) if isinstance(s, Move | Compute)]
    assert names[:2] == ["gather weights", "transpose weights"]
    # The text of three slices of this layout would be longer than 160 characters.
    assert product_after_slices(1400, 1000, 512) == once


def bases() -> st.SearchStrategy[TileMapping]:
    """Mappings of SIZE halves: in flat order, from some tile on, or in groups."""
    flat = st.integers(0, 40).map(lambda tile: linear_mapping(f16(SIZE), CHIP, tile))
    vector = TileVector.spread(2 * SIZE, 30, CHIP.num_tiles, 2)
    orders = [Grouped((16, 30), 0, 16, PoolTiles(30)), Named("blocks", (5,))]
    others = [TileMapping(vector, Layout(order)) for order in orders]
    return st.one_of(flat, st.sampled_from(others))


def follow(mapping: TileMapping, chain: Iterable[Link]) -> TileMapping:
    """Where the last view of a chain lies, by the ops of a graph."""
    for link in chain:
        kind, attrs = "permute", {"order": getattr(link, "order", ())}
        if isinstance(link, Slice):
            kind, attrs = "slice", {"dim": link.dim, "start": link.start}
        types = [f16(*link.shape)], [f16(*link.result)]
        mapping = view_mapping(make(kind, *types, **attrs), mapping)
    return mapping


@given(bases(), chains(SIZE), st.data())
def test_the_cost_of_a_product_depends_on_the_layout_alone(
    base: TileMapping, chain: tuple[Link, ...], data: st.DataObject
) -> None:
    mapping = follow(base, chain)
    assume(len(mapping.layout.views) <= 1)
    other = follow(base, data.draw(detours(chain)))
    assert mapping == other
    assert hash(mapping) == hash(other)
    count = math.prod(chain[-1].result)
    shape = (1, count) if count % 2 else (count // 2, 2)
    made = [
        plan_matmul(shape, (shape[1], 8), inputs=(m, None)) for m in (mapping, other)
    ]
    assert made[0] == made[1]


@given(bases(), chains(SIZE))
def test_a_view_has_the_bytes_of_its_elements(
    base: TileMapping, chain: tuple[Link, ...]
) -> None:
    mapping = follow(base, chain)
    assert mapping.bytes_by_tile.total == 2 * math.prod(chain[-1].result)
    held = zip(
        mapping.bytes_by_tile.to_array(), base.bytes_by_tile.to_array(), strict=True
    )
    assert all(part <= whole + 2 for part, whole in held)


def test_a_stretch_that_is_turned_lies_where_it_did() -> None:
    # Elements 3 to 437, seen as 15 rows of 29 and turned: no row begins at 3.
    chain = (Slice((160, 3), 0, 1, 145), Permute((15, 29), (1, 0)))
    base = linear_mapping(f16(SIZE), CHIP)
    assert follow(base, chain).bytes_by_tile == follow(base, chain[:1]).bytes_by_tile


@given(st.integers(0, 40), chains(SIZE, max_links=3))
def test_rows_in_flat_order_lie_on_the_tiles_they_lie_on(
    first_tile: int, chain: tuple[Link, ...]
) -> None:
    # NumPy says which elements are in the view; those of a run are known exactly.
    base = linear_mapping(f16(SIZE), CHIP, first_tile)
    indices = np.sort(indices_of(chain, SIZE))
    assume(np.array_equal(indices, np.arange(indices[0], indices[0] + len(indices))))
    mapping = follow(base, chain)
    assume(len(mapping.layout.views) <= 1)
    shares = base.bytes_by_tile.rotated(-first_tile).to_array()
    tiles = np.repeat(np.arange(len(shares)), shares // 2)[indices]
    expected = 2 * np.bincount(tiles, minlength=len(shares))
    assert mapping.bytes_by_tile.rotated(-first_tile).to_array().tolist() == (
        expected.tolist()
    )


def test_small_results_begin_on_the_tile_they_are_told() -> None:
    # 16 floats, two words of two a tile: four tiles.
    mapping = spread_mapping(f32(16), CHIP, 2, 4, begin_tile=100)
    assert mapping.bytes_by_tile.runs[:3] == ((100, 0), (4, 16), (1368, 0))


def test_shapes_choose_tiles_of_their_own() -> None:
    shapes = [(20, 64 << n, 56 >> n, 56 >> n) for n in range(4)]
    found = {dithered_tile(shape, CHIP.num_tiles) for shape in shapes}
    assert len(found) == 4
    assert max(found) < CHIP.num_tiles
