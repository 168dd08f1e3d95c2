"""Element-wise plans: where the result lies and what is exchanged for it."""

from popple.graph import DType, TensorType
from popple.plan import TileMapping
from popple.plan.layout import Grouped, Layout, Named, PoolTiles
from popple.plan.mapping import linear_mapping
from popple.plan.opplan import Compute, Move
from popple.program import TileVector
from tests.plan.machines import bow, plan
from tests.plan.signatures import f16, f32, make

TILES = bow().chip.num_tiles
ADD = make("add", [f32(64, 96), f32(64, 96)], [f32(64, 96)])
LINEAR = linear_mapping(f32(64, 96), bow().chip)


def spread(num_tiles: int) -> TileMapping:
    return TileMapping(
        TileVector.spread(64 * 96 * 4, num_tiles, TILES, 4), Layout(Named("mine"))
    )


def test_operands_that_lie_together_need_no_exchange() -> None:
    made = plan(ADD, (LINEAR, LINEAR))
    assert [type(step) for step in made.steps] == [Compute]
    assert made.outputs == (LINEAR,)
    assert made.flops == 64 * 96


def test_result_follows_the_operand_with_the_smallest_largest_tile() -> None:
    made = plan(ADD, (spread(10), spread(200)))
    assert made.outputs == (spread(200),)


def test_the_other_operand_is_exchanged_whole() -> None:
    move = plan(ADD, (spread(10), spread(200))).steps[0]
    assert isinstance(move, Move)
    assert move.sent_by_tile == spread(10).bytes_by_tile
    assert move.received_by_tile == spread(200).bytes_by_tile


def test_an_unplaced_operand_is_wished_beside_the_result() -> None:
    made = plan(ADD, (LINEAR, None))
    assert made.inputs == (None, LINEAR)
    assert [type(step) for step in made.steps] == [Compute]


def test_a_row_is_multicast_once_and_received_by_every_tile() -> None:
    # 24 KiB lie linearly on 192 tiles, 128 bytes or 32 elements on each: every tile
    # needs 32 elements of the row of 96, which is sent once.
    signature = make("add", [f32(64, 96), f32(96)], [f32(64, 96)])
    move = plan(signature).steps[0]
    assert isinstance(move, Move)
    assert move.sent_by_tile.total == 96 * 4
    assert move.received_by_tile.runs == ((192, 128), (TILES - 192, 0))


def test_a_column_is_received_one_element_a_row() -> None:
    # 32 elements of a tile lie in one row of 96, so it needs one element.
    signature = make("mul", [f32(64, 96), f32(64, 1)], [f32(64, 96)])
    move = plan(signature).steps[0]
    assert isinstance(move, Move)
    assert move.received_by_tile.maximum == 4


def test_constant_operands_take_the_scalar_codelet() -> None:
    made = plan(make("mul", [f16(64, 96)], [f16(64, 96)]))
    assert dict(made.choice)["codelet"] == "popops::BroadcastScalar1D<mul,half>"


def test_comparison_gives_bytes_where_its_operands_lie() -> None:
    mask = TensorType(DType.BOOL, (64, 96))
    made = plan(make("less", [f32(64, 96), f32(64, 96)], [mask]))
    assert made.outputs[0].layout.is_linear
    assert made.outputs[0].bytes_by_tile.runs[0] == (192, 32)
    assert made.outputs[0].bytes_by_tile.total == mask.num_bytes


def grouped(axis: int, group: int) -> TileMapping:
    """The matrix on 200 tiles, some neighbours along an axis adjacent."""
    layout = Layout(Grouped((64, 96), axis, group, PoolTiles(200)))
    return TileMapping(spread(200).bytes_by_tile, layout)


def test_an_exchange_puts_groups_in_order() -> None:
    made = plan(ADD, (LINEAR, grouped(1, 16)))
    move, *rest = made.steps
    assert [type(step) for step in rest] == [Compute]
    assert isinstance(move, Move)
    assert move.messages_by_tile is not None
    # 64 * 96 floats on 200 tiles, 31 on the fullest, in runs of 16.
    assert move.messages_by_tile.maximum == 2


def test_elements_that_are_apart_are_put_in_order_on_the_tile() -> None:
    made = plan(ADD, (LINEAR, grouped(0, 16)))
    names = [step.name for step in made.steps if isinstance(step, Compute)]
    assert names == ["operands/order", "add"]


def test_the_error_function_makes_gelu_dear() -> None:
    # By PopLibs' table 16 worker cycles for every half, not 5 for four of them. A tile
    # has at least 128 bytes: 64 halves, 11 for the busiest of six workers.
    found = {
        kind: plan(make(kind, [f16(64, 96)], [f16(64, 96)])).steps[0]
        for kind in ("gelu", "gelu_erf")
    }
    cycles = [
        step.vertices[0].cycles_by_tile.maximum
        for step in found.values()
        if isinstance(step, Compute)
    ]
    assert cycles[1] == 20 + 6 * (17 + 16 * 11)
    assert cycles[0] < cycles[1]
