"""The groups of `Options`, tensor locations, and options from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import poptorch
from poptorch._model.progress import CompilationProgress, ProgressBar


@pytest.fixture
def options() -> poptorch.Options:
    return poptorch.Options()


def test_training_defaults(options: poptorch.Options) -> None:
    training = options.Training
    assert training.gradient_accumulation == 1
    reduction = training.accumulation_and_replication_reduction_type
    assert reduction == poptorch.ReductionType.Mean
    strategy = training.meanAccumulationAndReplicationReductionStrategy
    assert strategy == poptorch.MeanReductionStrategy.Post


@pytest.mark.parametrize("value", [poptorch.ReductionType.NoReduction, "mean", 1])
def test_reduction_type_is_mean_or_sum(options: poptorch.Options, value: Any) -> None:
    with pytest.raises(ValueError, match=r"ReductionType\.Mean or"):
        options.Training.accumulationAndReplicationReductionType(value)


def test_training_setters_return_the_group(options: poptorch.Options) -> None:
    training = options.Training
    assert training.gradientAccumulation(4) is training
    sums = poptorch.ReductionType.Sum
    assert training.accumulationAndReplicationReductionType(sums) is training
    assert training.accumulation_and_replication_reduction_type == sums
    assert training.setAutomaticLossScaling(True) is training
    key = "automaticLossScalingSettings.enabled"
    assert options._Popart.options[key] is True


def test_accumulation_type_check(options: poptorch.Options) -> None:
    with pytest.raises(AssertionError, match="Unexpected type float"):
        options.Training.gradientAccumulation(2.0)


def test_partials_and_dithering_share_a_dict(options: poptorch.Options) -> None:
    options.Precision.setPartialsType(torch.half)
    options.Training.setConvolutionDithering(True)
    convolution = options._Popart.options["convolutionOptions"]
    assert convolution == {"enableConvDithering": True}
    assert options._Popart.options["partialsTypeMatMuls"] == "half"


def test_partials_type_is_float_or_half(options: poptorch.Options) -> None:
    with pytest.raises(ValueError, match=r"torch\.float or torch\.half"):
        options.Precision.setPartialsType(torch.int32)


def test_floating_point_exceptions_take_a_bool(options: poptorch.Options) -> None:
    options.Precision.enableFloatingPointExceptions(True)
    assert options._Popart.options["enableFloatingPointChecks"] is True
    with pytest.raises(AssertionError):
        options.Precision.enableFloatingPointExceptions(1)


def test_deprecated_options_warn(
    options: poptorch.Options, caplog: pytest.LogCaptureFixture
) -> None:
    options.Precision.halfFloatCasting(poptorch.HalfFloatCastingBehavior.Default)
    options.Precision.runningStatisticsAlwaysFloat(False)
    options.Jit.traceModel(False)
    assert len(caplog.messages) == 3
    assert all("[Deprecated]" in message for message in caplog.messages)
    with pytest.raises(ValueError, match="no longer supported"):
        options.Jit.traceModel(True)


@pytest.mark.parametrize("num_tiles", [32, 100, 192])
def test_io_tiles(options: poptorch.Options, num_tiles: int) -> None:
    options.TensorLocations.numIOTiles(num_tiles)
    assert options.TensorLocations.toDict() == {"numIOTiles": num_tiles}


@pytest.mark.parametrize("num_tiles", [10, 33, 193, 194])
def test_bad_io_tiles(options: poptorch.Options, num_tiles: int) -> None:
    message = "numIOTiles must be an even number between 32 and 192."
    with pytest.raises(AssertionError, match=message):
        options.TensorLocations.numIOTiles(num_tiles)


def test_location_settings() -> None:
    settings = poptorch.TensorLocationSettings()
    settings.minElementsForOffChip(4).useOnChipStorage(False).useIOTilesToLoad()
    assert settings.toDict() == {
        "minElementsForOffChip": 4,
        "onChip": 0,
        "useIOTilesToLoad": 1,
    }
    assert settings.useOnChipStorage(None) is settings
    assert not settings.exists("onChip")


@pytest.mark.parametrize(
    "setter", ["useOnChipStorage", "useReplicatedTensorSharding", "useIOTilesToStore"]
)
def test_location_settings_take_bools(setter: str) -> None:
    with pytest.raises(AssertionError, match="Unexpected type int"):
        getattr(poptorch.TensorLocationSettings(), setter)(1)


@pytest.mark.parametrize("kind", ["Activation", "Weight", "Optimizer", "Accumulator"])
def test_locations(options: poptorch.Options, kind: str) -> None:
    setter = getattr(options.TensorLocations, f"set{kind}Location")
    setter(poptorch.TensorLocationSettings().useOnChipStorage(True))
    stored = options.TensorLocations(f"location_{kind.lower()}")
    assert stored == {"onChip": 1}
    with pytest.raises(AssertionError):
        setter({"onChip": 1})


def test_distributed(options: poptorch.Options) -> None:
    distributed = options.Distributed
    assert (distributed.processId, distributed.numProcesses) == (0, 1)
    assert distributed.configureProcessId(2, 4) is distributed
    assert (distributed.processId, distributed.numProcesses) == (2, 4)
    distributed.disable()
    assert (distributed.processId, distributed.numProcesses) == (0, 1)


def test_distributed_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    monkeypatch.setenv("MY_SIZE", "8")
    options = poptorch.Options()
    assert options.Distributed.numProcesses == 3
    assert options.Distributed.processId == 1
    options.Distributed.setEnvVarNames("MY_SIZE", "UNSET_VARIABLE")
    assert (options.Distributed.processId, options.Distributed.numProcesses) == (0, 8)


def test_the_distributed_class_can_be_exchanged(options: poptorch.Options) -> None:
    class Subclass(poptorch.options._DistributedOptions):
        pass

    options.Distributed.__class__ = Subclass
    assert options.Distributed.numProcesses == 1


def test_popart_patterns(options: poptorch.Options) -> None:
    options._Popart.setPatterns({"PadSum": True})
    assert options._Popart.options["patterns"] == {"PadSum": True}
    assert options._Popart.options["patterns_level"] == 2
    with pytest.raises(AssertionError):
        options._Popart.setPatterns(["PadSum"])  # pyright: ignore[reportArgumentType]


def test_json(options: poptorch.Options) -> None:
    options.from_json(
        '{"deviceIterations": 4, "Training.gradientAccumulation": 8,'
        ' "connectionType": "ConnectionType.OnDemand", "logDir": "a.b",'
        ' "_Popart.set": ["key", 1], "outputMode": ["OutputMode.EveryN", 2]}'
    )
    assert options.device_iterations == 4
    assert options.Training.gradient_accumulation == 8
    assert options.connection_type == poptorch.ConnectionType.OnDemand
    assert options.log_dir == "a.b"
    assert options._Popart.options["key"] == 1
    assert options.output_return_period == 2


def test_json_names_the_nearest_option(options: poptorch.Options) -> None:
    with pytest.raises(AttributeError, match="'deviceIterations'"):
        options.from_json('{"deviceIteration": 4}')
    with pytest.raises(AttributeError, match="Unknown option"):
        options.from_json('{"clone.__func__": 4}')


@pytest.mark.parametrize("text", ["{", "[1]"])
def test_bad_json(options: poptorch.Options, text: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        options.from_json(text)


def test_default_options_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPTORCH_DEFAULT_OPTIONS", '{"deviceIterations": 2}')
    monkeypatch.setenv("POPTORCH_CACHE_DIR", "cache")
    options = poptorch.Options()
    assert options.device_iterations == 2
    assert options._Popart.options["cachePath"] == "cache"


def test_file(options: poptorch.Options, tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    file.write_text(
        "deviceIterations(3)\n\n# remark\n   replicationFactor(2)  # more\n"
        "setExecutionStrategy(poptorch.ShardedExecution())\n"
    )
    assert options.loadFromFile(str(file)) is options
    assert (options.device_iterations, options.replication_factor) == (3, 2)
    assert isinstance(options._execution_strategy, poptorch.ShardedExecution)
    file.write_text("deviceIterations(1)")
    options.loadFromFile(str(file))
    assert (options.device_iterations, options.replication_factor) == (1, 2)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "outputMode(poptorch.OutputMode.All",
            r"SyntaxError at line 2 of a\.conf: unexpected EOF while parsing\n"
            r"> options\.outputMode\(poptorch\.OutputMode\.All",
        ),
        ("logDir(1 2)", r"SyntaxError at line 2 of a\.conf: .*\n> options\.logDir"),
    ],
)
def test_syntax_errors_name_the_kept_line(
    options: poptorch.Options, tmp_path: Path, line: str, message: str
) -> None:
    file = tmp_path / "a.conf"
    file.write_text(f"# a comment\n\ndeviceIterations(3)\n{line}\n")
    with pytest.raises(poptorch.ConfigFileError, match=message):
        options.loadFromFile(str(file))
    assert options.device_iterations == 1  # nothing of a broken file is applied


def test_unknown_names_of_a_group_name_the_known_ones(
    options: poptorch.Options,
) -> None:
    with pytest.raises(AttributeError, match=r"Invalid attribute foo.*setPartialsType"):
        _ = options.Precision.foo
    with pytest.raises(AttributeError, match=r"mean 'enableStochasticRounding'"):
        options.Precision.enableStocasticRounding(True)
    with pytest.raises(AttributeError, match="Training"):
        _ = options.Trainin


def test_files_speak_of_strategies_and_locations(
    options: poptorch.Options, tmp_path: Path
) -> None:
    file = tmp_path / "a.conf"
    file.write_text(
        "Training.gradientAccumulation(2 * 4).accumulationAndReplicationReductionType("
        "poptorch.ReductionType.Sum)\n"
        'setAvailableMemoryProportion({"IPU0": 0.5, "IPU1": -1 + 1.25})\n'
        "setExecutionStrategy(poptorch.PipelinedExecution("
        'poptorch.Stage("a", "b").ipu(1), poptorch.options.Stage("c")))\n'
        "TensorLocations.setOptimizerLocation("
        "poptorch.TensorLocationSettings().useOnChipStorage(False))\n"
        "outputMode(poptorch.enums.OutputMode.EveryN, output_return_period=2)\n"
        '_Popart.set("a", [1, (2,), None, True])\n'
    )
    options.loadFromFile(str(file))
    assert options.Training.gradient_accumulation == 8
    assert options.available_memory_proportion == {0: 0.5, 1: 0.25}
    assert options._Popart.options["a"] == [1, (2,), None, True]
    assert options.output_return_period == 2


@pytest.mark.parametrize(
    "line",
    [
        "deviceIterations(__import__('os').getpid())",
        "deviceIterations(poptorch.ops.torch.hub.load('a', 'b'))",
        "deviceIterations(poptorch._impl.isRunningOnIpu())",
        "deviceIterations((lambda: 3)())",
        "deviceIterations([n for n in range(3)][1])",
        "deviceIterations(*[3])",
        "deviceIterations(3).__class__.__mro__[1]()",
        "deviceIterations(3).__setattr__('device_iterations', 4)",
        "device_iterations = 3",
        "deviceIterations(2 ** 3)",
        "deviceIterations(poptorch.OutputMode.__class__())",
        "modelName('a' * 3)",
    ],
)
def test_files_are_not_programs(
    options: poptorch.Options, tmp_path: Path, line: str
) -> None:
    file = tmp_path / "a.conf"
    file.write_text(line)
    kinds = (poptorch.ConfigFileError, AttributeError)
    with pytest.raises(kinds, match=r"at line 1 of a\.conf|no member|Unknown option"):
        options.loadFromFile(str(file))


def test_progress_bar_measures_time(capfd: pytest.CaptureFixture[str]) -> None:
    times = iter([10.0, 11.0, 14.5])
    bar = ProgressBar(clock=lambda: next(times))
    bar(1, 2)
    bar(2, 2)
    assert bar.compilation_time is not None
    assert bar.compilation_time.total_seconds() == 4.5
    assert "Graph compilation" in capfd.readouterr().err


def test_progress_moves_within_a_part() -> None:
    # Four parts of 25: a third of the first is 8, half of the second 25 + 12.
    shown: list[int] = []
    parts = ("tracing", "lowering", "preparing", "modelling")
    progress = CompilationProgress(lambda done, total: shown.append(done), parts, 100)
    progress("tracing")
    progress.move(1 / 3)
    progress("lowering")
    progress.move(1 / 2)
    assert shown == [0, 8, 25, 37]
