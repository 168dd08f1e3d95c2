"""Connectionist temporal classification: two loops over half of the time, then sums."""

from __future__ import annotations

from popple.graph import DType, TensorType
from popple.plan.opplan import Compute, Loop, OpPlan
from tests.plan.machines import plan
from tests.plan.signatures import f32, make


def ctc(time: int, batch: int, classes: int, labels: int) -> OpPlan:
    chances = f32(time, batch, classes)
    targets = TensorType(DType.I32, (batch, labels))
    return plan(make("ctc_loss", [chances, targets], [f32(batch), chances]))


def loops(found: OpPlan) -> list[Loop]:
    return [step for step in found.steps if isinstance(step, Loop)]


def test_both_directions_cross_half_of_the_time_twice() -> None:
    assert [loop.count for loop in loops(ctc(40, 1, 8, 5))] == [20, 20]


def test_every_sample_has_a_worker_on_each_tile_of_its_part() -> None:
    found = ctc(40, 1, 8, 5)
    first, second = loops(found)
    for loop, kinds in ((first, ("Alpha", "Beta")), (second, ("GradGiven",) * 2)):
        (compute,) = [step for step in loop.steps if isinstance(step, Compute)]
        names = [group.codelet.name for group in compute.vertices]
        assert all(kind in name for kind, name in zip(kinds, names, strict=True))
        total = sum(group.count_by_tile.total for group in compute.vertices)
        assert total == 2 * 6  # two halves of time, five labels and the last blank


def test_gradients_take_longer_than_the_way_there() -> None:
    first, second = loops(ctc(40, 1, 8, 5))

    def cycles(loop: Loop) -> int:
        found = [s for s in loop.steps if isinstance(s, Compute)]
        return found[0].vertices[0].cycles_by_tile.maximum

    assert (cycles(first), cycles(second)) == (44, 84)


def test_results_are_whole() -> None:
    losses, gradient = ctc(40, 3, 8, 5).outputs
    assert losses.bytes_by_tile.total == 3 * 4
    assert gradient.bytes_by_tile.total == 40 * 3 * 8 * 4


def test_a_row_without_labels_is_planned() -> None:
    assert loops(ctc(2, 1, 3, 0))
