"""The flow: which passes options ask for, and what a modelled program knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import popple
from popple.errors import UsageError
from popple.graph import Notes, Strategy, parse_graph
from popple.options import MemoryOptions, ModelOptions, OpOptions, UpdateOptions
from popple.pipeline import model_graph, passes_of, write_report
from popple.place import (
    AccumulateGradients,
    ApplyOpOptions,
    FuseDropout,
    GroupConvolutions,
    MarkLinearLayers,
    Offload,
    Pipeline,
    Recompute,
    RepeatOnDevice,
    Replicate,
    Schedule,
    Shard,
    ShareUpdates,
    UpdateWeights,
)
from popple.target import load_target

UPDATE = UpdateOptions("sgd_update", 0, {"w": "g"})
TEXT = """
graph "small" {
  input %x : f32[4,8]
  weight %w : f32[8,8]
  matmul %y : %y : f32[4,8] = (%x, %w) forward chip=0 stage=0 at "m.py:1"
  fill %g : %g : f32[8,8] = () backward chip=0 stage=0
  output %y
}
"""


def test_inference_is_replicated_shared_out_and_repeated() -> None:
    options = ModelOptions(replicas=2, device_iterations=3, micro_batch=4)
    assert passes_of(options) == [
        FuseDropout(),
        Replicate(2),
        Shard(Strategy.SHARDED),
        Offload(),
        RepeatOnDevice(3, 4),
        Schedule(),
        GroupConvolutions(),
        MarkLinearLayers(),
    ]


def test_options_for_kinds_of_ops_come_first() -> None:
    ops = OpOptions(by_kind={"matmul": Notes(memory_proportion=0.1)})
    _, first, *_ = passes_of(ModelOptions(ops=ops))
    assert first == ApplyOpOptions(by_kind=ops.by_kind)


def test_training_updates_then_accumulates_then_reduces() -> None:
    options = ModelOptions(accumulation=4, replicas=2, update=UPDATE)
    kinds = [type(each) for each in passes_of(options)]
    assert kinds[1:4] == [UpdateWeights, AccumulateGradients, Replicate]


def test_tensors_off_chip_and_shared_updates() -> None:
    memory = MemoryOptions(states_off_chip=2, shared_updates=64)
    passes = passes_of(ModelOptions(replicas=2, update=UPDATE, memory=memory))
    assert ShareUpdates(64) in passes
    assert Offload(states=2) in passes


def test_stages_that_take_turns_redo_work_if_asked_to() -> None:
    options = [ModelOptions(Strategy.SHARDED, recompute=r) for r in (False, True)]
    assert [Recompute() in passes_of(each) for each in options] == [False, True]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Strategy.SINGLE, Shard(Strategy.SHARDED)),
        (Strategy.SHARDED, Shard(Strategy.SHARDED)),
        (Strategy.PHASED, Shard(Strategy.PHASED)),
        (Strategy.PIPELINED, Pipeline(recompute=False)),
    ],
)
def test_a_strategy_chooses_how_chips_share(
    strategy: Strategy, expected: object
) -> None:
    options = ModelOptions(strategy=strategy, recompute=False)
    assert expected in passes_of(options)


@pytest.mark.parametrize(
    "name", ["accumulation", "replicas", "device_iterations", "micro_batch"]
)
def test_counts_are_at_least_one(name: str) -> None:
    settings: dict[str, Any] = {name: 0}
    with pytest.raises(UsageError, match=f"{name} must be at least 1"):
        ModelOptions(**settings)


def modelled(options: ModelOptions | None = None) -> popple.Modelled:
    return model_graph(parse_graph(TEXT), load_target("bow"), options)


def test_a_modelled_program_knows_its_speed() -> None:
    options = ModelOptions(device_iterations=2, micro_batch=4, update=UPDATE)
    found = modelled(options)
    # 4 samples in each of 2 iterations
    assert found.graph.execution.samples_per_run == 8
    assert found.samples_per_second == pytest.approx(8 / found.simulation.seconds)
    assert found.program is found.planned.program


def test_progress_names_the_stages_that_are_timed() -> None:
    stages: list[str] = []
    found = model_graph(parse_graph(TEXT), load_target("bow"), progress=stages.append)
    assert stages == list(found.seconds) == ["place", "plan", "simulate"]


def test_its_report_can_be_opened(tmp_path: Path) -> None:
    path = write_report(modelled(), tmp_path, framework="test", framework_version="1")
    assert path.name == "profile.pop"
    assert popple.open_report(tmp_path) is not None


def test_only_programs_of_a_facade_are_modelled() -> None:
    with pytest.raises(UsageError, match="a str is not a program") as error:
        popple.modelled("model")
    assert "training model" in error.value.remedy
