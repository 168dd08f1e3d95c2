"""Execution strategies: block -> (stage, IPU)."""

from __future__ import annotations

from typing import Any

import pytest

import poptorch
from poptorch import AutoStage, Liveness, Phase, Stage

LISTED = [poptorch.PipelinedExecution, poptorch.ShardedExecution]
PHASED = [poptorch.ParallelPhasedExecution, poptorch.SerialPhasedExecution]


@pytest.mark.parametrize("kind", LISTED)
def test_same_as_ipu_is_the_default(kind: type) -> None:
    strategy = kind()
    assert strategy.resolve("A", 0) == (0, 0)
    assert strategy.resolve("B", 3) == (3, 3)


@pytest.mark.parametrize("kind", LISTED)
def test_same_as_ipu_needs_an_ipu(kind: type) -> None:
    with pytest.raises(AssertionError, match="block 'A' has none"):
        kind(AutoStage.SameAsIpu).resolve("A", None)


def test_auto_increment_counts_new_blocks_from_one() -> None:
    strategy = poptorch.PipelinedExecution(AutoStage.AutoIncrement)
    places = [strategy.resolve(*block) for block in [("A", 0), ("B", 1), ("C", 0)]]
    assert places == [(1, 0), (2, 1), (3, 0)]
    assert strategy.resolve("A", 0) == (1, 0)
    assert strategy.resolve("D", None) == (4, 4)


@pytest.mark.parametrize("kind", LISTED)
@pytest.mark.parametrize("second", [Stage("B", "C"), ["B", "C"]])
def test_position_is_the_stage(kind: type, second: Any) -> None:
    strategy = kind("A", second, "D")
    blocks = ["A", "B", "C", "D"]
    assert [strategy.resolve(b, None) for b in blocks] == [
        (0, 0),
        (1, 1),
        (1, 1),
        (2, 2),
    ]


def test_ipu_of_the_stage_wins_over_the_block() -> None:
    strategy = poptorch.PipelinedExecution(Stage("A").ipu(5), "B")
    assert strategy.resolve("A", 2) == (0, 5)
    assert strategy.resolve("B", 2) == (1, 2)
    strategy.stage("B").ipu(7)
    assert strategy.resolve("B", 2) == (1, 7)


@pytest.mark.parametrize("kind", LISTED + PHASED)
def test_block_in_two_stages(kind: type) -> None:
    with pytest.raises(AssertionError, match="'A' is associated with more than one"):
        kind("A", Stage("B", "A"))


@pytest.mark.parametrize("kind", LISTED + PHASED)
def test_unlisted_blocks(kind: type) -> None:
    strategy = kind("A", "B")
    with pytest.raises(AssertionError, match="Unknown Block 'C'"):
        strategy.resolve("C", 0)
    with pytest.raises(AssertionError, match="Unknown block C"):
        strategy.stage("C")


def test_stage_takes_strings() -> None:
    assert Stage("A", "B").blocks == ("A", "B")
    with pytest.raises(AssertionError, match="must be strings"):
        Stage(1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(AssertionError, match="integer"):
        Stage("A").ipu("0")  # pyright: ignore[reportArgumentType]


def test_stages_are_named_things() -> None:
    with pytest.raises(AssertionError, match="A stage is"):
        poptorch.PipelinedExecution(3)


@pytest.mark.parametrize(
    ("strategy", "mode"),
    [
        (poptorch.PipelinedExecution(), 0),
        (poptorch.ShardedExecution(), 1),
        (poptorch.SerialPhasedExecution("A"), 2),
        (poptorch.ParallelPhasedExecution("A"), 2),
    ],
)
def test_backend_mode(strategy: Any, mode: int) -> None:
    assert strategy.backendOptions()["execution_mode"] == mode


@pytest.mark.parametrize("kind", PHASED)
def test_phases_must_be_listed(kind: type) -> None:
    with pytest.raises(AssertionError, match="list its phases"):
        kind()


@pytest.mark.parametrize("kind", PHASED)
def test_a_list_of_phases_is_refused(kind: type) -> None:
    with pytest.raises(AssertionError, match="stages or of block IDs"):
        kind([Phase("A"), Phase("B")])


@pytest.mark.parametrize(
    "phase", [Phase("A", "B"), Stage("A", "B"), ["A", "B"], [Stage("A", "B")]]
)
def test_phase_forms(phase: Any) -> None:
    strategy = poptorch.SerialPhasedExecution("first", phase)
    assert strategy.resolve("A", 0) == strategy.resolve("B", 0) == (1, 0)


def test_phase_of_two_stages_on_given_ipus() -> None:
    strategy = poptorch.ParallelPhasedExecution(
        Phase(Stage("A"), Stage("B")), [Stage("C"), Stage("D")]
    )
    strategy.phase(0).ipus(0, 2)
    strategy.phase(1).ipus(1, 3)
    places = [strategy.resolve(block, None) for block in "ABCD"]
    assert places == [(0, 0), (0, 2), (1, 1), (1, 3)]
    assert strategy.phase(1).stage(1).blocks == ("D",)


def test_number_of_ipus_must_match() -> None:
    with pytest.raises(AssertionError, match="2 stages but 1 IPUs"):
        Phase(Stage("A"), Stage("B")).ipus(0)


def test_parallel_phases_alternate_between_even_and_odd() -> None:
    strategy = poptorch.ParallelPhasedExecution("A", "B")
    assert strategy.resolve("A", None) == (0, 0)
    assert strategy.resolve("B", None) == (1, 1)
    with pytest.raises(poptorch.Error, match="odd phases run on odd IPUs"):
        strategy.resolve("B", 2)


def test_serial_phases_share_ipus() -> None:
    strategy = poptorch.SerialPhasedExecution("A", "B")
    assert [strategy.resolve(block, 0) for block in "AB"] == [(0, 0), (1, 0)]


def test_phased_settings() -> None:
    serial = poptorch.SerialPhasedExecution("A")
    serial.setTensorsLiveness(Liveness.OffChipAfterEachPhase)
    serial.useSeparateBackwardPhase()
    assert serial.backendOptions() == {
        "execution_mode": 2,
        "separate_backward_phase": True,
        "tensors_liveness": 3,
        "serial_phases_execution": True,
    }
    parallel = poptorch.ParallelPhasedExecution("A").sendTensorsOffChipAfterFwd()
    assert parallel.backendOptions()["tensors_liveness"] == Liveness.OffChipAfterFwd
    parallel.sendTensorsOffChipAfterFwd(False)
    assert parallel.backendOptions()["tensors_liveness"] == Liveness.AlwaysLive


@pytest.mark.parametrize("phase", [-1, "0"])
def test_phases_are_named_by_position(phase: Any) -> None:
    with pytest.raises(AssertionError, match="0 or more"):
        poptorch.SerialPhasedExecution("A").phase(phase)
