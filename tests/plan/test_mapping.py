"""Linear mappings follow Poplar's rule; views keep, derive or cancel layouts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.graph import DType, Signature, TensorType
from popple.plan import TileMapping
from popple.plan.mapping import (
    has_aliases,
    is_colocated,
    linear_mapping,
    mapping_like,
    rescaled,
    source_mapping,
    spread_mapping,
    view_mapping,
)
from popple.program import TileVector
from popple.program import linear_mapping as poplar_mapping
from tests.plan.machines import bow, bow_with_tiles
from tests.plan.signatures import f16, f32, make

CHIP = bow().chip
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
    assert turned.layout == "linear>permute[6,4:1,0]"


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
    wish = TileMapping(TileVector.spread(240, 60, CHIP.num_tiles), "block")
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


def test_layouts_do_not_grow_for_ever() -> None:
    mapping = linear_mapping(f32(7, 11, 13), CHIP)
    for _ in range(15):  # reshaped in between, so that nothing cancels
        mapping = view_mapping(permute((7, 11, 13), (1, 0, 2)), mapping)
        mapping = view_mapping(permute((13, 7, 11), (1, 0, 2)), mapping)
    assert len(mapping.layout) <= 160


def test_a_square_turned_is_not_the_square() -> None:
    mapping = linear_mapping(f32(8, 8), CHIP)
    assert view_mapping(permute((8, 8), (1, 0)), mapping) != mapping
