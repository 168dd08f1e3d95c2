"""`poptorch.Options`: defaults, setters, checks, freezing, copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch

import poptorch
from poptorch.options import option_names

DEFAULTS = {
    "device_iterations": 1,
    "replication_factor": 1,
    "input_group_size": 1,
    "input_cgt": poptorch.CommGroupType.Consecutive,
    "output_mode": poptorch.OutputMode.Default,
    "output_return_period": 1,
    "broadcast_buffers": True,
    "auto_round_num_ipus": False,
    "connection_type": poptorch.ConnectionType.Always,
    "sync_pattern": poptorch.SyncPattern.Full,
    "available_memory_proportion": {},
    "anchored_tensors": {},
    "log_dir": ".",
    "max_repeat_logs": 4,
}


@pytest.fixture
def options() -> poptorch.Options:
    return poptorch.Options()


@pytest.mark.parametrize(("name", "value"), DEFAULTS.items())
def test_defaults(options: poptorch.Options, name: str, value: Any) -> None:
    assert getattr(options, name) == value
    assert options(name) == value


@pytest.mark.parametrize("name", ["random_seed", "use_model", "ipu_id", "model_name"])
def test_unset_options_do_not_exist(options: poptorch.Options, name: str) -> None:
    assert not options.exists(name)
    with pytest.raises(AttributeError):
        getattr(options, name)


SETTERS = [
    ("deviceIterations", 4, "device_iterations", 4),
    ("replicationFactor", 2, "replication_factor", 2),
    ("autoRoundNumIPUs", True, "auto_round_num_ipus", True),
    ("broadcastBuffers", False, "broadcast_buffers", False),
    ("logDir", "logs", "log_dir", "logs"),
    ("maxRepeatLogs", 7, "max_repeat_logs", 7),
    ("maxRepeatLogs", None, "max_repeat_logs", 2**64 - 1),
    ("modelName", "net", "model_name", "net"),
    ("useIpuModel", True, "use_model", True),
    ("useIpuId", 3, "ipu_id", 3),
    ("randomSeed", 42, "random_seed", 42),
    (
        "connectionType",
        poptorch.ConnectionType.OnDemand,
        "connection_type",
        poptorch.ConnectionType.OnDemand,
    ),
    (
        "syncPattern",
        poptorch.SyncPattern.SinglePipeline,
        "sync_pattern",
        poptorch.SyncPattern.SinglePipeline,
    ),
    (
        "setAvailableMemoryProportion",
        {"IPU0": 0.5, "IPU12": 0.1},
        "available_memory_proportion",
        {0: 0.5, 12: 0.1},
    ),
]


@pytest.mark.parametrize(("setter", "value", "name", "stored"), SETTERS)
def test_setters_return_the_options(
    options: poptorch.Options, setter: str, value: Any, name: str, stored: Any
) -> None:
    assert getattr(options, setter)(value) is options
    assert getattr(options, name) == stored


@pytest.mark.parametrize(
    ("setter", "value", "key", "stored"),
    [
        ("enableStableNorm", True, "enableStableNorm", True),
        ("enableSyntheticData", True, "syntheticDataMode", 2),
        ("enableSyntheticData", False, "syntheticDataMode", 0),
        ("logCycleCount", True, "instrumentWithHardwareCycleCounter", True),
        ("updatableNamedBuffers", ["b"], "updatableNamedBuffers", ["b"]),
    ],
)
def test_backend_setters(
    options: poptorch.Options, setter: str, value: Any, key: str, stored: Any
) -> None:
    getattr(options, setter)(value)
    assert options._Popart.options[key] == stored


WRONG_TYPES = [
    ("deviceIterations", 1.5),
    ("replicationFactor", "2"),
    ("connectionType", 1),
    ("syncPattern", "Full"),
    ("setExecutionStrategy", "pipelined"),
    ("useIpuId", "0"),
    ("randomSeed", 1.0),
    ("outputMode", 2),
    ("modelName", 3),
]


@pytest.mark.parametrize(("setter", "value"), WRONG_TYPES)
def test_wrong_types(options: poptorch.Options, setter: str, value: Any) -> None:
    with pytest.raises(AssertionError, match="Unexpected type"):
        getattr(options, setter)(value)


@pytest.mark.parametrize("setter", ["deviceIterations", "replicationFactor"])
def test_counts_must_be_positive(options: poptorch.Options, setter: str) -> None:
    with pytest.raises(AssertionError, match="at least 1 but is 0"):
        getattr(options, setter)(0)


def test_assignment(options: poptorch.Options) -> None:
    options.device_iterations = 3
    assert options.device_iterations == 3
    with pytest.raises(AssertionError, match="Unexpected type"):
        options.device_iterations = "3"
    with pytest.raises(AssertionError, match="'device_iterations'"):
        options.device_iteration = 3


def test_unknown_reads_suggest_a_name(options: poptorch.Options) -> None:
    with pytest.raises(AttributeError, match="'replication_factor'"):
        _ = options.replication_facto


def test_memory_proportion_keys(options: poptorch.Options) -> None:
    with pytest.raises(AssertionError, match="Invalid key: CPU0"):
        options.setAvailableMemoryProportion({"CPU0": 0.1})


def test_output_mode_every_n(options: poptorch.Options) -> None:
    with pytest.raises(AssertionError, match="output_return_period"):
        options.outputMode(poptorch.OutputMode.EveryN)
    options.outputMode(poptorch.OutputMode.EveryN, 5)
    assert (options.output_mode, options.output_return_period) == (1, 5)
    assert not options.defaultOutputMode()


def test_period_is_kept_at_one_without_value(options: poptorch.Options) -> None:
    options.outputMode(poptorch.OutputMode.All)
    assert options.output_return_period == 1


@pytest.mark.parametrize(
    ("size", "kind", "message"),
    [
        (2, poptorch.CommGroupType.All, "cannot be CommGroupType.All"),
        (8, poptorch.CommGroupType.Consecutive, "cannot be larger"),
        (3, poptorch.CommGroupType.Orthogonal, "must be a factor"),
    ],
)
def test_bad_input_groups(
    options: poptorch.Options, size: int, kind: poptorch.CommGroupType, message: str
) -> None:
    options.replicationFactor(4)
    with pytest.raises(ValueError, match=message):
        options.inputReplicaGrouping(size, kind)


def test_no_grouping_is_groups_of_one(options: poptorch.Options) -> None:
    options.inputReplicaGrouping(7, poptorch.CommGroupType.NoGrouping)
    assert options.input_group_size == 1
    assert options.input_cgt == poptorch.CommGroupType.Consecutive


def test_random_seed_seeds_torch(options: poptorch.Options) -> None:
    options.randomSeed(5)
    first = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(first, torch.rand(3))


def test_offline_target(options: poptorch.Options) -> None:
    options.useOfflineIpuTarget()
    assert options.connection_type == poptorch.ConnectionType.Never
    assert options.ipu_version == 2


def test_anchor_returns_none_and_ignores_freezing(options: poptorch.Options) -> None:
    options._freeze()
    assert options.anchorTensor("a", "fc.weight") is None
    options.anchorTensor("b", "x", poptorch.OutputMode.EveryN, 4)
    assert options.anchored_tensors == {
        "a": ["fc.weight", True, None, 1],
        "b": ["x", False, poptorch.OutputMode.EveryN, 4],
    }


def test_profiling_sets_the_engine(options: poptorch.Options) -> None:
    options._Popart.setEngineOptions({"mine": "1"})
    options.enableProfiling("out")
    engine = options._Popart.options["engineOptions"]
    assert engine["mine"] == "1"
    assert engine["autoReport.directory"] == "out"
    assert engine["autoReport.all"] == "true"


def test_profiling_warns_when_the_environment_wins(
    options: poptorch.Options,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"autoReport.all": "true"}')
    options.enableProfiling()
    assert "POPLAR_ENGINE_OPTIONS" in caplog.text


def test_caching(options: poptorch.Options) -> None:
    options.enableExecutableCaching("cache")
    assert options._Popart.options["cachePath"] == "cache"
    assert options._Popart.options["enableEngineCaching"] is True
    options.enableExecutableCaching(None)
    assert options._Popart.options["enableEngineCaching"] is False


def test_location_excludes(options: poptorch.Options) -> None:
    options.sourceLocationExcludes(["a"]).appendToLocationExcludes("b", "c")
    assert options._source_location_excludes == ["a", "b", "c"]
    assert "a" not in poptorch.Options()._source_location_excludes


FROZEN_CALLS = [
    lambda o: o.deviceIterations(2),
    lambda o: o.randomSeed(42),
    lambda o: o.set(device_iterations=2),
    lambda o: o.createOrSet(new_option=2),
    lambda o: o.showCompilationProgressBar(False),
    lambda o: o.setExecutionStrategy(poptorch.ShardedExecution()),
    lambda o: o.disableModuleNamescope(),
    lambda o: o.Training.gradientAccumulation(2),
    lambda o: o.Precision.setPartialsType(torch.half),
    lambda o: o.Distributed.configureProcessId(0, 2),
    lambda o: o.TensorLocations.numIOTiles(64),
    lambda o: o._Popart.set("key", 1),
]


@pytest.mark.parametrize("call", FROZEN_CALLS)
def test_frozen_options_refuse_everything(options: poptorch.Options, call: Any) -> None:
    call(options.clone())
    options._freeze()
    with pytest.raises(AttributeError, match="Can't modify frozen Options"):
        call(options)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda options: options.clone()])
def test_copies_are_unfrozen_and_independent(
    options: poptorch.Options, copied: Any
) -> None:
    options._Popart.set("key", [1])
    options._freeze()
    twin = copied(options)
    twin.deviceIterations(9).Training.gradientAccumulation(8)
    twin.Precision.setPartialsType(torch.half)
    twin._Popart.options["key"].append(2)
    assert options.device_iterations == 1
    assert options._Popart.options["key"] == [1]
    # Groups of the copy still write into the copy's own backend values.
    assert twin._Popart.options["partialsTypeMatMuls"] == "half"
    assert "partialsTypeMatMuls" not in options._Popart.options


def test_options_pickle(options: poptorch.Options) -> None:
    options.deviceIterations(3).Training.gradientAccumulation(2)
    twin = pickle.loads(pickle.dumps(options))
    assert twin.device_iterations == 3
    assert twin.Training.gradient_accumulation == 2


def test_to_dict_needs_an_output_mode(options: poptorch.Options) -> None:
    with pytest.raises(AssertionError, match="output mode must be picked"):
        options.toDict()


def test_to_dict_merges_all_groups(options: poptorch.Options) -> None:
    options.outputMode(poptorch.OutputMode.All).showCompilationProgressBar(False)
    options.TensorLocations.numIOTiles(64)
    values = options.toDict()
    assert values["device_iterations"] == 1
    assert values["gradient_accumulation"] == 1
    assert values["num_distributed_processes"] == 1
    assert values["numIOTiles"] == 64
    assert values["execution_mode"] == 0
    assert "compilation_progress_bar_fn" not in values


def test_to_dict_refuses_a_key_set_twice(options: poptorch.Options) -> None:
    options.outputMode(poptorch.OutputMode.All)
    options._Popart.set("log_dir", "x")
    with pytest.raises(AssertionError, match="two places: log_dir"):
        options.toDict()


def test_repr_shows_values_of_all_groups(options: poptorch.Options) -> None:
    options.replicationFactor(4).Training.gradientAccumulation(16)
    text = repr(options)
    assert text.startswith("Options(")
    assert "replication_factor=4" in text
    assert "gradient_accumulation=16" in text
    assert f"{id(options):x}" not in text


def test_option_names_lists_every_setter() -> None:
    names = option_names()
    assert len(names) == len(set(names))
    assert {"deviceIterations", "outputMode", "Training.gradientAccumulation"} <= {
        *names
    }
    assert not {"clone", "toDict", "loadFromFile", "exists"} & {*names}


def test_setters_carry_documentation_and_names() -> None:
    method = poptorch.Options.deviceIterations
    assert method.__name__ == "deviceIterations"
    assert (method.__doc__ or "").endswith(".")
