"""Rings: what each chip sends, and where the parts lie."""

from popple.plan.opplan import Compute, LinkCopy, Loop, OpPlan
from popple.plan.rules.collective import ring_bytes, ring_steps
from tests.plan.machines import plan
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


def test_one_replica_needs_no_links() -> None:
    made = plan(make("all_reduce", [f32(64)], [f32(64)], replicas=1))
    assert not any(isinstance(step, LinkCopy) for step in made.steps)
    assert made.steps


def test_a_share_is_taken_without_traffic() -> None:
    made = plan(make("take_share", [f32(64, 96)], [f32(1536)], replicas=4))
    (step,) = made.steps
    assert isinstance(step, Compute)
    assert made.outputs[0].bytes_by_tile.total == 1536 * 4
