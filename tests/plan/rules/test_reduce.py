"""Reductions: local where rows are whole, staged where they are not."""

from popple.plan import OpPlan, TileMapping
from popple.plan.blocks.reduction import stage_share
from popple.plan.layout import Layout, Named
from popple.plan.opplan import Compute, Move
from popple.program import TileVector
from tests.plan.machines import bow, plan
from tests.plan.signatures import f16, f32, make

TILES = bow().chip.num_tiles


def stages(made: OpPlan) -> str:
    return "".join(type(step).__name__[0] for step in made.steps)


def test_whole_rows_are_reduced_where_they_lie() -> None:
    # One row of 64 floats on each of 100 tiles.
    rows = TileMapping(
        TileVector.spread(100 * 256, 100, TILES, 256), Layout(Named("rows"))
    )
    made = plan(make("reduce_sum", [f32(100, 64)], [f32(100)], dims=(1,)), (rows,))
    assert stages(made) == "C"
    assert made.outputs[0].bytes_by_tile.runs == ((100, 4), (TILES - 100, 0))


def test_few_partials_are_combined_in_one_stage() -> None:
    # Rows of 1 KiB on 8 tiles each: 8 partials for every output.
    made = plan(make("reduce_sum", [f32(100, 256)], [f32(100)], dims=(1,)))
    assert stages(made) == "CMC"
    assert dict(made.choice)["reduce partials"] == "8"


def test_many_partials_are_combined_in_two_stages() -> None:
    # 1471 tiles: 1471 // 64 = 22 of them take 67 partials each, one takes the 22.
    made = plan(make("reduce_sum", [f32(1000, 1000)], [f32()], dims=(0, 1)))
    assert stages(made) == "CCMCMC"
    first, second = (step for step in made.steps if isinstance(step, Move))
    assert first.received_by_tile.runs[0] == (22, 67 * 4)
    assert second.received_by_tile.runs[0] == (1, 22 * 4)


def test_many_outputs_go_straight_to_their_tiles() -> None:
    # 74 partials for each output, fewer than 2 sqrt(1472), from most tiles.
    made = plan(make("reduce_sum", [f32(20, 64 * 1024)], [f32(20)], dims=(1,)))
    assert len([step for step in made.steps if isinstance(step, Move)]) == 1


def test_a_share_takes_a_grain_of_columns_and_enough_partials() -> None:
    # 299 partials of 4 x 8 outputs: 4 columns, 299 * 4 // 64 = 18 cuts of 17 rows.
    assert stage_share(32, 299, 8, 4, 1200) == (4, 17)


def test_results_lie_together_in_four_words() -> None:
    made = plan(make("reduce_sum", [f16(6272, 32)], [f16(32)], dims=(0,)))
    assert made.outputs[0].bytes_by_tile.runs[0] == (4, 16)


def test_data_that_is_not_reduced_on_its_tile_is_sent_as_it_is() -> None:
    # 64 rows of 64 halves, one on each tile: no tile has two of one column.
    made = plan(make("reduce_sum", [f16(64, 64)], [f16(64)], dims=(0,)))
    assert stages(made)[0] == "M"


def test_sums_of_halves_travel_as_floats_and_maxima_as_halves() -> None:
    for kind, size in (("reduce_sum", 4), ("reduce_max", 2)):
        made = plan(make(kind, [f16(6400)], [f16()], dims=(0,)))
        move = next(step for step in made.steps if isinstance(step, Move))
        assert move.sent_by_tile.maximum == size


def test_columns_leave_a_partial_for_every_column_a_tile_holds() -> None:
    # 64 tiles of 128 bytes: two rows of 16 columns each, 16 partials of 4 bytes.
    made = plan(make("reduce_sum", [f32(128, 16)], [f32(16)], dims=(0,)))
    move = made.steps[1]
    assert isinstance(move, Move)
    assert move.sent_by_tile.runs == ((64, 64), (TILES - 64, 0))


def test_no_dims_reduce_everything() -> None:
    made = plan(make("reduce_sum", [f32(64, 32)], [f32()], dims=()))
    assert made.outputs[0].bytes_by_tile.total == 4
    assert made.flops >= 64 * 32 - 1


def test_norm_ends_with_a_square_root() -> None:
    last = plan(make("reduce_norm", [f32(64)], [f32()], dims=(0,))).steps[-1]
    assert isinstance(last, Compute)
    assert last.vertices[0].codelet.name == "popops::UnaryOp1DInPlace<sqrt,float>"
