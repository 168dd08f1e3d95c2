"""Updates run where the weight lies, and put what is new beside it."""

from popple.plan import TileMapping
from popple.plan.layout import Layout, Named
from popple.plan.mapping import linear_mapping
from popple.plan.opplan import Compute, Move
from popple.program import TileVector
from tests.plan.machines import bow, plan
from tests.plan.signatures import f16, f32, make

WEIGHT = f32(64, 96)
HOME = TileMapping(
    TileVector.spread(24_576, 300, bow().chip.num_tiles, 8), Layout(Named("home"))
)
LINEAR = linear_mapping(WEIGHT, bow().chip)


def test_new_state_is_wished_beside_the_weight() -> None:
    made = plan(
        make("adam_update", [WEIGHT] * 4, [WEIGHT] * 3), (HOME, HOME, None, None)
    )
    assert made.inputs == (None, None, HOME, HOME)
    assert made.outputs == (HOME, HOME, HOME)
    assert {type(step) for step in made.steps} == {Compute}


def test_a_gradient_elsewhere_is_exchanged() -> None:
    made = plan(make("sgd_update", [WEIGHT, WEIGHT], [WEIGHT]), (HOME, LINEAR))
    move = made.steps[0]
    assert isinstance(move, Move)
    assert move.received_by_tile == HOME.bytes_by_tile
    assert made.outputs == (HOME,)


def test_float_state_of_a_half_weight_lies_on_its_tiles() -> None:
    half = TileMapping(
        TileVector.spread(12_288, 300, bow().chip.num_tiles, 8), Layout(Named("home"))
    )
    signature = make(
        "momentum_update", [f16(64, 96), f16(64, 96), WEIGHT], [f16(64, 96), WEIGHT]
    )
    wish = plan(signature, (half, half, None)).inputs[2]
    assert wish is not None
    assert wish.bytes_by_tile == half.bytes_by_tile.scaled(2)


def test_a_new_accumulator_is_wished_beside_its_gradient() -> None:
    made = plan(make("accumulate", [WEIGHT, WEIGHT], [WEIGHT]), (None, HOME))
    assert made.inputs == (HOME, None)


def test_a_new_accumulator_is_wished_beside_a_weight_that_is_read_with_it() -> None:
    made = plan(
        make("accumulate", [WEIGHT] * 3, [WEIGHT]),
        (None, LINEAR, HOME),
    )
    assert made.inputs == (HOME, None, None)
    # The gradient moves, in every micro-batch.
    assert isinstance(made.steps[0], Move)


def test_lamb_adds_two_norms() -> None:
    lamb = plan(make("lamb_update", [WEIGHT] * 4, [WEIGHT] * 3))
    adam = plan(make("adam_update", [WEIGHT] * 4, [WEIGHT] * 3))
    assert len(lamb.steps) - len(adam.steps) == 2 * len("CMCMC")


def test_the_gradient_is_free_once_the_state_has_it() -> None:
    made = plan(make("adam_update", [WEIGHT] * 4, [WEIGHT] * 3), (HOME,) * 4)
    reads = [step.reads for step in made.steps if isinstance(step, Compute)]
    # Two moments take it; the step and the weight are made of those.
    assert reads == [None, None, (0, 2, 3), (0, 2, 3)]
