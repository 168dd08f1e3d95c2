"""Reductions: local where rows are whole, staged where they are not."""

from popple.plan import OpPlan, TileMapping
from popple.plan.opplan import Compute, Move
from popple.program import TileVector
from tests.plan.machines import bow, plan
from tests.plan.signatures import f16, f32, make

TILES = bow().chip.num_tiles


def stages(made: OpPlan) -> str:
    return "".join(type(step).__name__[0] for step in made.steps)


def test_whole_rows_are_reduced_where_they_lie() -> None:
    # One row of 64 floats on each of 100 tiles.
    rows = TileMapping(TileVector.spread(100 * 256, 100, TILES, 256), "rows")
    made = plan(make("reduce_sum", [f32(100, 64)], [f32(100)], dims=(1,)), (rows,))
    assert stages(made) == "C"
    assert made.outputs[0].bytes_by_tile.runs == ((100, 4), (TILES - 100, 0))


def test_few_partials_are_combined_in_one_stage() -> None:
    # Rows of 1 KiB on 8 tiles each: 8 partials for every output.
    made = plan(make("reduce_sum", [f32(100, 256)], [f32(100)], dims=(1,)))
    assert stages(made) == "CMC"
    assert dict(made.choice)["reduce stages"] == "2"


def test_many_partials_are_combined_in_two_stages() -> None:
    made = plan(make("reduce_sum", [f32(1000, 1000)], [f32()], dims=(0, 1)))
    assert stages(made) == "CMCMC"


def test_all_partials_arrive() -> None:
    # 200 tiles hold 128 bytes each of one sum: one stage of 15 partials for each of
    # 14 tiles (15 x 14 covers 200), then 14 partials for one.
    made = plan(make("reduce_sum", [f32(6400)], [f32()], dims=(0,)))
    first, second = (step for step in made.steps if isinstance(step, Move))
    assert first.received_by_tile.total == 14 * 15 * 4
    assert second.received_by_tile.total == 14 * 4


def test_sums_of_halves_travel_as_floats_and_maxima_as_halves() -> None:
    for kind, size in (("reduce_sum", 4), ("reduce_max", 2)):
        made = plan(make(kind, [f16(6400)], [f16()], dims=(0,)))
        move = made.steps[1]
        assert isinstance(move, Move)
        assert move.sent_by_tile.maximum == size


def test_columns_leave_a_partial_for_every_column_a_tile_holds() -> None:
    # 64 tiles of 128 bytes: one row of 32 columns each, 32 partials of 4 bytes.
    made = plan(make("reduce_sum", [f32(64, 32)], [f32(32)], dims=(0,)))
    move = made.steps[1]
    assert isinstance(move, Move)
    assert move.sent_by_tile.runs == ((64, 128), (TILES - 64, 0))


def test_no_dims_reduce_everything() -> None:
    made = plan(make("reduce_sum", [f32(64, 32)], [f32()], dims=()))
    assert made.outputs[0].bytes_by_tile.total == 4
    assert made.flops >= 64 * 32 - 1


def test_norm_ends_with_a_square_root() -> None:
    last = plan(make("reduce_norm", [f32(64)], [f32()], dims=(0,))).steps[-1]
    assert isinstance(last, Compute)
    assert last.vertices[0].codelet.name == "popops::UnaryOp1D<sqrt,float>"
