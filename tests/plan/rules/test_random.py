"""Random numbers: the generators are seeded, used and given back."""

from popple.plan.opplan import Compute, Move
from tests.plan.machines import bow, plan
from tests.plan.signatures import f16, make

MADE = plan(make("dropout", [f16(100, 64)], [f16(100, 64)]))


def test_every_tile_is_seeded_first() -> None:
    seed, state, numbers = MADE.steps
    assert isinstance(seed, Move)
    assert seed.received_by_tile.runs == ((bow().chip.num_tiles, 8),)
    assert isinstance(state, Compute)
    # Each of 6 workers mixes 27 cycles.
    assert state.vertices[0].cycles_by_tile.maximum == 14 + 6 * 27
    assert isinstance(numbers, Compute)


def test_the_state_of_the_generators_is_kept_meanwhile() -> None:
    (state,) = (t for t in MADE.temporaries if t.name == "generators")
    assert state.bytes_by_tile.maximum == 6 * 16
    assert (state.first, state.last) == (0, 2)
