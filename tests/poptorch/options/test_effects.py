"""Each option that is listed as having an effect changes a number or a value.

One entry for each: what is seen without the option and with it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import popple
import poptorch
from poptorch import _translate as translate
from poptorch._device import num_ipus
from poptorch._options.tables import TRANSLATED
from tests.poptorch.models import options

Change = Callable[[poptorch.Options], Any]


Pair = tuple[Any, Any]
Sum = poptorch.ReductionType.Sum
OFF_CHIP = poptorch.TensorLocationSettings().useOnChipStorage(False)
OFF_CHIP.minElementsForOffChip(1)
X = torch.linspace(-1, 1, 12 * 16).reshape(12, 16)


class Net(nn.Module):
    """Two blocks on two IPUs, a buffer and dropout."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(16, 16)
        self.second = nn.Linear(16, 16)
        self.register_buffer("seen", torch.zeros(1))
        self.seen: Tensor

    def forward(self, x: Tensor) -> Tensor:
        poptorch.Block.start("a", ipu_id=0)
        x = torch.dropout(torch.relu(self.first(x)), 0.5, self.training)
        self.seen.add_(x.detach().mean())
        poptorch.Block.start("b", ipu_id=1)
        return poptorch.identity_loss(self.second(x).exp(), "mean")


def made(change: Change, is_half: bool = False, **counts: Any) -> Any:
    """A training model with options that `change` has changed, on two IPUs."""
    opts = options(**counts).setExecutionStrategy(poptorch.ShardedExecution())
    change(opts)
    net = Net().half() if is_half else Net()
    adam = poptorch.optim.Adam(net.parameters(), lr=0.1)
    return poptorch.trainingModel(net, opts, adam)


def calls(change: Change, is_half: bool = False, **counts: Any) -> Any:
    """What two calls return; weights and buffers after them."""
    model = made(change, is_half, **counts)
    outputs = [model(X.half() if is_half else X).tolist() for _ in range(2)]
    state = [tensor.tolist() for tensor in model.model.state_dict().values()]
    model.destroy()
    return outputs, state


def cost(change: Change, **counts: Any) -> Any:
    """Modelled cycles, and bytes on the fullest tile."""
    model = made(change, **counts)
    model.compile(X)
    simulation = popple.modelled(model).simulation
    model.destroy()
    return simulation.cost.cycles, simulation.peak_tile_bytes


def large_cost(change: Change) -> int:
    """Modelled cycles of a product that memory bounds."""
    opts = options()
    change(opts)
    model = poptorch.inferenceModel(nn.Linear(2048, 2048).half(), opts)
    model.compile(torch.zeros(512, 2048).half())
    cycles = popple.modelled(model).simulation.cost.cycles
    model.destroy()
    return cycles


def outcome(change: Change, use: Callable[[Any], Any], *, compiled: bool = True) -> Any:
    """What comes of a use of the model: a value, or the kind of an error."""
    model = made(change)
    if compiled:
        model.compile(X)
    try:
        return use(model)
    except (AssertionError, poptorch.Error) as error:
        return type(error)
    finally:
        model.destroy()


def setting(change: Change, see: Callable[[poptorch.Options], Any]) -> Any:
    """What the core is told."""
    opts = options()
    change(opts)
    try:
        return see(opts)
    except poptorch.Error as error:
        return type(error)


def session_of(opts: poptorch.Options) -> Any:
    """How a compiled step is repeated and fed."""
    opts.outputMode(poptorch.OutputMode.All)
    return translate.session_options(opts, training=True)


def buffer_sets(opts: poptorch.Options) -> int:
    """Copies of the buffers of a module without batch norms."""
    module = nn.Linear(2, 2)
    module.register_buffer("scale", torch.ones(1))
    model = poptorch.inferenceModel(module, opts)
    model.compile(torch.ones(2, 2))
    found = model._get_compiled().session.options.num_buffer_sets
    model.destroy()
    return found


def second_of_two(opts: poptorch.Options) -> Any:
    return opts.Distributed.configureProcessId(1, 2)


def nothing(opts: poptorch.Options) -> None:
    """The options as they are."""


def both(see: Callable[..., Any], change: Change, *args: Any, **kwargs: Any) -> Pair:
    """What is seen without the change and with it."""
    return see(nothing, *args, **kwargs), see(change, *args, **kwargs)


def files(change: Change, folder: Path) -> Any:
    """What compiling and modelling leave in a folder."""
    model = made(change)
    model.compile(X)
    popple.modelled(model)
    model.destroy()
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def files_of(change: Callable[[poptorch.Options, str], Any], folder: Path) -> Pair:
    before = files(nothing, folder)
    return before, files(lambda o: change(o, str(folder)), folder)


def named_reports(folder: Path) -> Pair:
    first, second = folder / "first", folder / "second"
    plain = files(lambda o: o.enableProfiling(str(first)), first)
    return plain, files(lambda o: o.modelName("m").enableProfiling(str(second)), second)


def held_id(model: Any) -> int:
    return model._device._lease.device.id


def relaxed(change: Change) -> int:
    """How many warnings an attribute that the optimiser does not know makes."""
    opts = options()
    change(opts)
    warned: list[str] = []
    net = Net()
    adam = poptorch.optim.Adam(net.parameters(), lr=0.1)
    with pytest.MonkeyPatch.context() as patch:
        warn = lambda text, *args: warned.append(text)  # noqa: E731
        patch.setattr("poptorch._logging.logger.warning", warn)
        model = poptorch.trainingModel(net, opts, adam)
        adam.foo = 1  # type: ignore[attr-defined]
        model.setOptimizer(adam)
    return len(warned)


def divide(model: Any) -> Any:
    return model(X * 1e30)


EFFECTS: dict[str, Callable[[Path], Pair]] = {
    "deviceIterations": lambda _: both(cost, lambda o: o.deviceIterations(2)),
    "anchorTensor": lambda _: both(
        outcome,
        lambda o: o.anchorTensor("w", "first.weight"),
        lambda m: (m(X), m.getAnchoredTensor("w"))[1].shape,
    ),
    "replicationFactor": lambda _: both(
        cost, lambda o: o.replicationFactor(2).broadcastBuffers(False)
    ),
    "inputReplicaGrouping": lambda _: both(
        setting,
        lambda o: o.replicationFactor(2).inputReplicaGrouping(
            2, poptorch.CommGroupType.Consecutive
        ),
        lambda o: session_of(o.replicationFactor(2)).batches.num_shares,
    ),
    "broadcastBuffers": lambda _: both(
        setting,
        lambda o: o.replicationFactor(2).broadcastBuffers(False),
        lambda o: buffer_sets(o.replicationFactor(2)),
    ),
    "disableModuleNamescope": lambda _: both(
        outcome, lambda o: o.disableModuleNamescope(), lambda m: m.getTensorNames()
    ),
    "outputMode": lambda _: both(
        calls, lambda o: o.outputMode(poptorch.OutputMode.All), d=2
    ),
    "randomSeed": lambda _: both(calls, lambda o: o.randomSeed(7)),
    "setExecutionStrategy": lambda _: both(
        cost, lambda o: o.setExecutionStrategy(poptorch.PipelinedExecution()), g=4
    ),
    "autoRoundNumIPUs": lambda _: both(
        setting, lambda o: o.autoRoundNumIPUs(True), lambda o: num_ipus(3, o)
    ),
    "connectionType": lambda _: both(
        outcome,
        lambda o: o.connectionType(poptorch.ConnectionType.OnDemand),
        lambda m: m.isAttachedToDevice(),
    ),
    "useIpuId": lambda _: both(outcome, lambda o: o.useIpuId(17), held_id),
    "useIpuModel": lambda _: both(
        outcome, lambda o: o.useIpuModel(True), lambda m: m._device._lease is None
    ),
    "useOfflineIpuTarget": lambda _: both(
        outcome, lambda o: o.useOfflineIpuTarget(), lambda m: m(X).isfinite().item()
    ),
    "setAvailableMemoryProportion": lambda _: both(
        large_cost, lambda o: o.setAvailableMemoryProportion({"IPU0": 0.02})
    ),
    "enableExecutableCaching": lambda f: files_of(
        lambda o, path: o.enableExecutableCaching(path), f
    ),
    "enableSyntheticData": lambda _: both(calls, lambda o: o.enableSyntheticData(True)),
    "enableProfiling": lambda f: files_of(lambda o, path: o.enableProfiling(path), f),
    "modelName": named_reports,
    "logCycleCount": lambda _: both(
        outcome, lambda o: o.logCycleCount(True), lambda m: (m(X), m.cycleCount())[1]
    ),
    "showCompilationProgressBar": lambda _: both(
        outcome,
        lambda o: o.showCompilationProgressBar(True),
        lambda m: m.compilationTime(),
    ),
    "updatableNamedBuffers": lambda _: both(
        outcome,
        lambda o: o.updatableNamedBuffers(["seen"]),
        lambda m: m.copyNamedBuffersToDevice(),
    ),
    "Training.gradientAccumulation": lambda _: both(
        cost, lambda o: o.Training.gradientAccumulation(2)
    ),
    "Training.accumulationAndReplicationReductionType": lambda _: both(
        calls,
        lambda o: o.Training.accumulationAndReplicationReductionType(Sum),
        is_half=True,
        g=2,
    ),
    "Training.setAutomaticLossScaling": lambda _: both(
        setting,
        lambda o: o.Training.setAutomaticLossScaling(True),
        translate.automatic_scaling,
    ),
    "Training.setMeanAccumulationAndReplicationReductionStrategy": lambda _: both(
        calls,
        lambda o: o.Training.setMeanAccumulationAndReplicationReductionStrategy(
            poptorch.MeanReductionStrategy.Running
        ),
        g=3,
    ),
    "TensorLocations.numIOTiles": lambda _: both(
        large_cost, lambda o: o.TensorLocations.numIOTiles(128)
    ),
    "TensorLocations.setAccumulatorLocation": lambda _: both(
        cost, lambda o: o.TensorLocations.setAccumulatorLocation(OFF_CHIP), g=2
    ),
    "TensorLocations.setOptimizerLocation": lambda _: both(
        cost, lambda o: o.TensorLocations.setOptimizerLocation(OFF_CHIP)
    ),
    "TensorLocations.setWeightLocation": lambda _: both(
        cost, lambda o: o.TensorLocations.setWeightLocation(OFF_CHIP)
    ),
    "relaxOptimizerAttributesChecks": lambda _: both(
        relaxed, lambda o: o.relaxOptimizerAttributesChecks()
    ),
    "Precision.setPartialsType": lambda _: both(
        large_cost, lambda o: o.Precision.setPartialsType(torch.half)
    ),
    "Precision.enableFloatingPointExceptions": lambda _: both(
        outcome, lambda o: o.Precision.enableFloatingPointExceptions(True), divide
    ),
    "Precision.enableStochasticRounding": lambda _: both(
        calls, lambda o: o.Precision.enableStochasticRounding(True), is_half=True
    ),
    "Distributed.disable": lambda _: (
        setting(
            lambda o: o.Distributed.configureProcessId(1, 2), translate.num_replicas
        ),
        setting(
            lambda o: o.Distributed.configureProcessId(1, 2).disable(),
            translate.num_replicas,
        ),
    ),
    "Distributed.setEnvVarNames": lambda _: both(
        setting,
        lambda o: o.Distributed.setEnvVarNames("PROCESSES", "PROCESS"),
        translate.num_replicas,
    ),
    "Distributed.configureProcessId": lambda _: both(
        setting,
        lambda o: o.Distributed.configureProcessId(0, 2),
        translate.num_replicas,
    ),
    "_Popart.set": lambda _: both(
        large_cost, lambda o: o._Popart.set("partialsTypeMatMuls", "half")
    ),
    "_Popart.setEngineOptions": lambda f: files_of(
        lambda o, path: o._Popart.setEngineOptions(
            {"autoReport.all": "true", "autoReport.directory": path}
        ),
        f,
    ),
}


def test_there_is_an_entry_for_each() -> None:
    assert sorted(EFFECTS) == sorted(TRANSLATED)


@pytest.mark.parametrize("name", EFFECTS)
def test_the_option_changes_something(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCESSES", "2")
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    without, with_it = EFFECTS[name](first)
    assert str(without) != str(with_it)
    # What is seen does not change by itself.
    assert str(EFFECTS[name](second)[0]) == str(without)


def test_wide_loads_of_weights_make_products_quicker() -> None:
    wide = {"use128BitConvUnitLoad": "true"}
    narrow = large_cost(lambda o: o._Popart.set("matmulOptions", {}))
    assert large_cost(lambda o: o._Popart.set("matmulOptions", wide)) < narrow
    # Products are no convolutions.
    assert large_cost(lambda o: o._Popart.set("convolutionOptions", wide)) == narrow
