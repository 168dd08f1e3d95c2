"""Rearrangements: what stays in order is cheap, what does not is not."""

from popple.plan import OpPlan
from popple.plan.mapping import linear_mapping, view_mapping
from popple.plan.opplan import Compute, Move
from tests.plan.machines import bow, plan
from tests.plan.signatures import f16, make

MATRIX = f16(256, 256)
LINEAR = linear_mapping(MATRIX, bow().chip)
TURN = make("permute", [MATRIX], [MATRIX], order=(1, 0))
COPY = make("copy", [MATRIX], [MATRIX])


def compute_cycles(made: OpPlan) -> int:
    (step,) = [step for step in made.steps if isinstance(step, Compute)]
    return step.vertices[0].cycles_by_tile.maximum


def test_a_copy_in_place_moves_nothing_between_tiles() -> None:
    assert [type(step) for step in plan(COPY, (LINEAR,)).steps] == [Compute]


def test_a_transposed_copy_is_exchanged_and_shuffled() -> None:
    turned = plan(COPY, (view_mapping(TURN, LINEAR),))
    # 128 KiB on 1024 tiles, 128 bytes each: 16 words, or 64 elements of 5/4 cycles.
    assert compute_cycles(plan(COPY, (LINEAR,))) == 288 + 16
    assert compute_cycles(turned) == 288 + 80
    assert isinstance(turned.steps[0], Move)


def test_concat_receives_every_byte_once() -> None:
    both = f16(512, 256)
    made = plan(make("concat", [MATRIX, MATRIX], [both], dim=0))
    move = made.steps[0]
    assert isinstance(move, Move)
    assert move.sent_by_tile.total == move.received_by_tile.total == both.num_bytes
