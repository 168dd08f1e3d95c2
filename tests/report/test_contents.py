"""Contents that contradict themselves are refused where they are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from popple import report as rp
from popple.errors import ReportError

Change = dict[str, Any]

CONTRADICTIONS: list[tuple[Change, str]] = [
    ({"target": rp.TargetInfo(1, 4, 1000, 1, "ipu2")}, "8 tiles, but the target has 4"),
    ({"programs": (rp.ProgramNode(0, "Sequence", children=(99,)),)}, "child 99"),
    ({"compute_sets": ()}, "program 1: compute set 0"),
    ({"control_programs": (rp.EntryProgram(0, 77),)}, "program 77"),
    ({"steps": (rp.Step("Sync", 55),)}, "program 55"),
    ({"steps": (rp.Step("Sync", chips=(rp.lockstep(2, 0, ()),)),)}, "chip 2"),
    ({"variables": (rp.Variable(0, "x", 4, class_id=42),)}, "liveness class 42"),
]


@pytest.mark.parametrize(("change", "text"), CONTRADICTIONS)
def test_contradictions(contents: rp.ReportContents, change: Change, text: str) -> None:
    with pytest.raises(ReportError, match=text):
        replace(contents, **change)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: rp.TargetInfo(2, 4, 1, 1, "ipu2", kind="GPU"), "kind 'GPU'"),
        (lambda: rp.TargetInfo(3, 4, 1, 1, "ipu2", num_replicas=2), "2 replicas"),
        (lambda: rp.Traffic(((3, 1),), ((4, 1),)), "3 tiles receive but 4"),
        (lambda: rp.LivenessClass(1, False, ((5, 3),)), r"\[5, 3\)"),
        (lambda: rp.TimelineSlice(0, 5, 4, "late"), "ends before"),
        (lambda: rp.MemoryByTile(((2, 0),), *[((1, 0),)] * 9), "unequal tiles"),
    ],
)
def test_impossible_records(make: Callable[[], object], text: str) -> None:
    with pytest.raises(ReportError, match=text):
        make()


def test_class_zero_stands_for_no_memory(contents: rp.ReportContents) -> None:
    unplaced = rp.Variable(0, "x", 0, rp.NO_CLASS_ID)
    assert replace(contents, variables=(unplaced,)).variables == (unplaced,)


def test_replicas_share_the_chips() -> None:
    target = rp.TargetInfo(4, 10, 100, 1, "ipu2", num_replicas=2)
    assert (target.num_tiles, target.total_bytes) == (40, 4000)
    assert (target.chips_per_replica, target.tiles_per_replica) == (2, 20)
    assert target.bytes_per_replica == 2000


def test_lockstep_measures_the_tiles() -> None:
    # 3 tiles of 100 and one idle: mean 75, balance 0.75; active ones are even.
    step = rp.lockstep(1, 500, ((3, 100), (1, 0)))
    assert (step.chip, step.base_cycles, step.cycles) == (1, 500, 100)
    assert step.active_to_cycles == rp.Spread(100, 100, 100)
    assert step.all_to_cycles == rp.Spread(100, 75, 0)
    assert (step.num_active_tiles, step.active_tile_balance) == (3, 1.0)
    assert step.tile_balance == 0.75


def test_idle_step_has_no_balance() -> None:
    step = rp.lockstep(0, 0, ((4, 0),))
    assert (step.cycles, step.num_active_tiles, step.tile_balance) == (0, 0, 0.0)


def test_totals_account_for_every_tile_cycle(contents: rp.ReportContents) -> None:
    # Compute 360 + 320, exchange 8 * 10, between chips 8 * 20, host 30; the rest
    # of 160 cycles on 8 tiles is waiting: 1280 - 950.
    spent = contents.cycle_totals[0].tile_cycles
    assert spent == rp.TileCycles(0, 680, 80, 160, 30, 0, 0, 330)


def test_equal_patterns_share_a_class() -> None:
    classes = rp.number_classes([((0, 2),), None, ((0, 2),)])
    assert [each.id for each in classes.values()] == [1, 2]
    assert classes[None].is_always_live
    assert classes[((0, 2),)].is_live_at(1)
    assert not classes[((0, 2),)].is_live_at(2)
