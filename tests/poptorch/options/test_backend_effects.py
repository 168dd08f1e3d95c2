"""Each name of PopART that is listed as followed changes a number or a value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import popple
import poptorch
from poptorch import _translate as translate
from poptorch._options.tables import BACKEND_NAMES
from tests.poptorch.models import options
from tests.poptorch.options.test_effects import (
    Change,
    Pair,
    X,
    both,
    calls,
    cost,
    divide,
    files,
    large_cost,
    outcome,
    setting,
)

SCALING = "automaticLossScalingSettings."
MERGE = "replicatedCollectivesSettings.mergeAllReduceCollectives"
WIDE_LOADS = {"use128BitConvUnitLoad": "true"}
Effect = Callable[[Path], Pair]


def put(name: str, value: Any) -> Change:
    return lambda opts: opts._Popart.set(name, value)


def of(
    see: Callable[..., Any], name: str, value: Any, *args: Any, **how: Any
) -> Effect:
    return lambda _: both(see, put(name, value), *args, **how)


def of_scaling(name: str, value: Any) -> Effect:
    """How the loss scale adapts once it does."""

    def adapting(opts: poptorch.Options) -> None:
        opts._Popart.set(f"{SCALING}enabled", True)

    def otherwise(opts: poptorch.Options) -> None:
        adapting(opts)
        opts._Popart.set(SCALING + name, value)

    return lambda _: (
        setting(adapting, translate.automatic_scaling),
        setting(otherwise, translate.automatic_scaling),
    )


def cost_of_two(change: Change) -> Any:
    """Modelled cycles and bytes of two replicas."""

    def changed(opts: poptorch.Options) -> None:
        change(opts.broadcastBuffers(False))

    return cost(changed, r=2)


def normed(change: Change) -> Any:
    """Four channels in two groups."""
    opts = options()
    change(opts)
    model = poptorch.inferenceModel(nn.GroupNorm(2, 4), opts)
    found = model(torch.arange(16.0).reshape(1, 4, 4)).tolist()
    model.destroy()
    return found


def cycles_of(change: Change, module: nn.Module, *shape: int) -> int:
    """Modelled cycles of inference in half precision."""
    opts = options()
    change(opts)
    model = poptorch.inferenceModel(module.half(), opts)
    model.compile(torch.zeros(shape).half())
    cycles = popple.modelled(model).simulation.cost.cycles
    model.destroy()
    return cycles


def convolved(change: Change) -> int:
    """A convolution of many channels."""
    return cycles_of(change, nn.Conv2d(256, 256, 3), 4, 256, 16, 16)


def layer_normed(change: Change) -> int:
    """A norm of its own."""
    return cycles_of(change, nn.LayerNorm(256), 64, 256)


def repeated(change: Change) -> int:
    """Two equal layers."""
    layers = nn.Sequential(nn.Linear(256, 256), nn.Linear(256, 256))
    return cycles_of(change, layers, 64, 256)


class Layers(nn.Module):
    """Two linear layers and a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(256, 512), nn.Linear(512, 256))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The loss."""
        return poptorch.identity_loss(self.body(x).sum(), "none")


def trained(change: Change) -> int:
    """Modelled cycles of training linear layers."""
    opts = options()
    change(opts)
    module = Layers()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    model = poptorch.trainingModel(module, opts, optimizer)
    model.compile(torch.zeros(64, 256))
    cycles = popple.modelled(model).simulation.cost.cycles
    model.destroy()
    return cycles


def of_cache(name: str) -> Effect:
    """What caching leaves in a folder, with the other option set already."""

    def tried(folder: Path) -> Pair:
        values = {"enableEngineCaching": True, "cachePath": str(folder)}

        def change(opts: poptorch.Options, names: list[str]) -> None:
            for each in names:
                opts._Popart.set(each, values[each])

        others = [each for each in values if each != name]
        without = files(lambda o: change(o, others), folder)
        return without, files(lambda o: change(o, list(values)), folder)

    return tried


def of_reports(folder: Path) -> Pair:
    given = {"autoReport.all": "true", "autoReport.directory": str(folder)}
    without = files(lambda _: None, folder)
    return without, files(put("engineOptions", given), folder)


EFFECTS: dict[str, Effect] = {
    f"{SCALING}binEdgeLocation": of_scaling("binEdgeLocation", 0.5),
    f"{SCALING}enabled": of(
        setting, f"{SCALING}enabled", True, translate.automatic_scaling
    ),
    f"{SCALING}thresholdUpperCountProportion": of_scaling(
        "thresholdUpperCountProportion", 0.5
    ),
    f"{SCALING}updatePeriod": of_scaling("updatePeriod", 3),
    "autoRecomputation": of(cost, "autoRecomputation", 4),
    "cachePath": of_cache("cachePath"),
    "convolutionOptions": of(convolved, "convolutionOptions", WIDE_LOADS),
    "enableEngineCaching": of_cache("enableEngineCaching"),
    "enableFloatingPointChecks": of(outcome, "enableFloatingPointChecks", True, divide),
    "enableFullyConnectedPass": of(trained, "enableFullyConnectedPass", False),
    "enableOutlining": of(repeated, "enableOutlining", False),
    "enableStableNorm": of(layer_normed, "enableStableNorm", True),
    "enableStochasticRounding": of(
        calls, "enableStochasticRounding", True, is_half=True
    ),
    "engineOptions": of_reports,
    "groupNormStridedChannelGrouping": of(
        normed, "groupNormStridedChannelGrouping", True
    ),
    "instrumentWithHardwareCycleCounter": of(
        outcome,
        "instrumentWithHardwareCycleCounter",
        True,
        lambda m: (m(X), m.cycleCount())[1],
    ),
    "matmulOptions": of(large_cost, "matmulOptions", WIDE_LOADS),
    "partialsTypeMatMuls": of(large_cost, "partialsTypeMatMuls", "half"),
    MERGE: of(cost_of_two, MERGE, True),
    "syntheticDataMode": of(calls, "syntheticDataMode", 1),
    "updatableNamedBuffers": of(
        outcome,
        "updatableNamedBuffers",
        ["seen"],
        lambda m: m.copyNamedBuffersToDevice(),
    ),
}


def test_there_is_an_entry_for_each() -> None:
    assert sorted(EFFECTS) == sorted(BACKEND_NAMES)


@pytest.mark.parametrize("name", EFFECTS)
def test_the_name_changes_something(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A cache without a path is the folder the program runs in.
    monkeypatch.chdir(tmp_path)
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    without, with_it = EFFECTS[name](first)
    assert str(without) != str(with_it)
    assert str(EFFECTS[name](second)[0]) == str(without)
