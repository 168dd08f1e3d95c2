"""Rings: what each chip sends, and where the parts lie."""

from popple.plan import TileMapping
from popple.plan.layout import Layout, Named
from popple.plan.mapping import linear_mapping
from popple.plan.opplan import Compute, LinkCopy, Loop, Move, OpPlan
from popple.plan.rules.collective import Ring, ring_bytes, ring_steps, rings_of
from popple.program import TileVector
from popple.target import load_target
from tests.plan.machines import bow, plan
from tests.plan.signatures import f32, make


def sent_by(made: OpPlan) -> list[tuple[int, int]]:
    """Steps of each ring, and the bytes of a step."""
    rings = [step for step in made.steps if isinstance(step, Loop)]
    return [
        (ring.count, step.num_bytes)
        for ring in rings
        for step in ring.steps
        if isinstance(step, LinkCopy)
    ]


def test_each_part_but_one_passes_a_chip() -> None:
    assert ring_bytes(1000, 4) == 750
    assert ring_bytes(1000, 1) == 0


def test_all_reduce_sends_twice_three_quarters_over_four_replicas() -> None:
    made = plan(make("all_reduce", [f32(64, 96)], [f32(64, 96)], replicas=4))
    # 3/4 of 24,576 bytes in two steps: parts meet in the middle.
    assert sent_by(made) == [(2, 9_216), (2, 9_216)]
    assert made.flops == 3 * 64 * 96 // 4


def test_reduce_scatter_sends_half_of_that() -> None:
    made = plan(make("reduce_scatter", [f32(64, 96)], [f32(16, 96)], replicas=4))
    assert sent_by(made) == [(2, 9_216)]


def test_large_tensors_go_all_the_way_round_few_replicas() -> None:
    assert ring_steps("reduce_scatter", 2_000_000, 4) == 3
    assert ring_steps("reduce_scatter", 2_000_000, 8) == 4
    assert ring_steps("all_gather", 10**9, 64) == 32


def test_gathering_scattered_parts_restores_the_layout() -> None:
    scattered = plan(make("reduce_scatter", [f32(64, 96)], [f32(16, 96)], replicas=4))
    gather = make("all_gather", [f32(16, 96)], [f32(64, 96)], replicas=4)
    made = plan(gather, scattered.outputs)
    assert made.outputs[0].layout.is_linear


WEIGHT, SHARE = f32(64, 96), f32(16 * 96)
HOME = TileMapping(
    TileVector.spread(24_576, 300, bow().chip.num_tiles, 8), Layout(Named("home"))
)


def scattered_to(home: TileMapping) -> tuple[TileMapping, OpPlan]:
    """A weight's share, and a linear gradient's that lies as it does."""
    taken = plan(make("take_share", [WEIGHT], [SHARE], replicas=4), (home,))
    scatter = make("reduce_scatter", [WEIGHT, SHARE], [SHARE], replicas=4)
    linear = linear_mapping(WEIGHT, bow().chip)
    return taken.outputs[0], plan(scatter, (linear, taken.outputs[0]))


def test_a_gradient_is_scattered_in_the_layout_of_the_weights_share() -> None:
    share, made = scattered_to(HOME)
    assert made.outputs == (share,)
    # All of it moves, before the ring, and the copy stays until the ring is over.
    move, ring = made.steps[0], len(made.steps) - 1
    assert isinstance(move, Move)
    assert move.received_by_tile.total == 24_576
    copy = next(t for t in made.temporaries if t.name == "arranged")
    assert (copy.bytes_by_tile.total, copy.first, copy.last) == (24_576, 0, ring)
    update = make("sgd_update", [SHARE, SHARE], [SHARE])
    steps = plan(update, (share, made.outputs[0])).steps
    assert not any(isinstance(step, Move) for step in steps)


def test_a_gradient_that_lies_there_is_copied_on_its_tiles() -> None:
    share, made = scattered_to(linear_mapping(WEIGHT, bow().chip))
    assert made.outputs == (share,)
    assert not any(isinstance(step, Move) for step in made.steps)
    assert any(t.name == "arranged" for t in made.temporaries)


def test_one_replica_needs_no_links() -> None:
    made = plan(make("all_reduce", [f32(64)], [f32(64)], replicas=1))
    assert not any(isinstance(step, LinkCopy) for step in made.steps)
    assert made.steps


def test_a_share_is_taken_without_traffic() -> None:
    made = plan(make("take_share", [f32(64, 96)], [f32(1536)], replicas=4))
    (step,) = made.steps
    assert isinstance(step, Compute)
    assert made.outputs[0].bytes_by_tile.total == 1536 * 4


def test_replicas_that_fill_racks_have_two_levels() -> None:
    # Racks of 64 chips hold 8 replicas of 8.
    whole = Ring(8), Ring(2, 8, is_between_racks=True)
    assert rings_of(16, load_target("bow-pod128", 8, 16)) == whole
    assert rings_of(8, load_target("bow-pod128", 8, 8)) == (Ring(8),)
    assert rings_of(12, load_target("bow-pod128", 8, 12)) == (Ring(12),)
    racks = (Ring(2, 1, is_between_racks=True),)
    assert rings_of(2, load_target("bow-pod128", 64, 2)) == racks


def test_only_shares_pass_between_racks() -> None:
    target = load_target("bow-pod128", 8, 16)
    signature = make("all_reduce", [f32(64, 96)], [f32(64, 96)], replicas=16)
    made = plan(signature, target=target)
    # 7/8 of 24,576 bytes in four steps in the rack; of an eighth of them one half is
    # sent between two racks, in one step, and comes back as sums.
    assert sent_by(made) == [(4, 5_376), (4, 5_376)]
    crossing = [step for step in made.steps if isinstance(step, LinkCopy)]
    assert [step.num_bytes for step in crossing] == [1_536, 1_536]
    assert all(step.is_between_racks for step in crossing)
