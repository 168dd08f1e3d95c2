"""Softmax and norms are composed of reductions and passes."""

from popple.plan import TileMapping
from popple.plan.layout import Layout, Named
from popple.plan.opplan import Compute, Move
from popple.program import TileVector
from tests.plan.machines import bow, plan
from tests.plan.signatures import f16, f32, make

TILES = bow().chip.num_tiles
ROWS = TileMapping(TileVector.spread(100 * 128, 100, TILES, 128), Layout(Named("rows")))


def test_softmax_of_whole_rows_needs_no_exchange() -> None:
    # Maximum, subtract, exp, sum, inverse, multiply: six compute phases.
    made = plan(make("softmax", [f16(100, 64)], [f16(100, 64)], dim=1), (ROWS,))
    assert [type(step) for step in made.steps] == [Compute] * 6
    assert made.outputs == (ROWS,)


def test_passes_in_place_have_no_pointer_to_a_result() -> None:
    made = plan(make("softmax", [f16(100, 64)], [f16(100, 64)], dim=1), (ROWS,))
    found = [
        step.vertices[0].codelet for step in made.steps if isinstance(step, Compute)
    ]
    state = {codelet.name: codelet.state_bytes for codelet in found}
    # A pointer and a length; a statistic with its length, a pointer and two counts.
    assert state["popops::UnaryOp1DInPlace<exp,half>"] == 4 + 4
    assert state["popops::BroadcastVectorOuterInPlace<sub,half>"] == 8 + 4 + 4
    reductions = {n: size for n, size in state.items() if "Reduce" in n}
    assert set(reductions.values()) == {4 + 4 + 2 * 2}


def test_softmax_of_split_rows_multicasts_their_statistics() -> None:
    made = plan(make("softmax", [f16(4, 1000)], [f16(4, 1000)], dim=1))
    names = [step.name for step in made.steps if isinstance(step, Move)]
    assert names == [
        "max-sub/stage0/exchange",
        "max-sub/multicast",
        "add-mul/stage0/exchange",
        "add-mul/multicast",
    ]


def test_norm_gives_statistics_where_they_were_made() -> None:
    signature = make(
        "layer_norm",
        [f16(100, 64), f16(64), f16(64)],
        [f16(100, 64), f32(100), f32(100)],
        num_statistics=100,
    )
    made = plan(signature, (ROWS, None, None))
    assert made.outputs[0] == ROWS
    assert made.outputs[1].bytes_by_tile.runs == ((100, 4), (TILES - 100, 0))


def test_norm_without_scale_has_two_passes_less() -> None:
    with_scale = make(
        "layer_norm",
        [f16(100, 64), f16(64), f16(64)],
        [f16(100, 64)],
        num_statistics=100,
    )
    without = make("layer_norm", [f16(100, 64)], [f16(100, 64)], num_statistics=100)
    longer, shorter = plan(with_scale, (ROWS, None, None)), plan(without, (ROWS,))
    assert len(longer.steps) - len(shorter.steps) == 3  # multicast, scale, shift
