"""What a cached model computes, to the last bit what it computes uncached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

import poptorch
from tests.poptorch.model.test_cache import is_cached
from tests.poptorch.models import Classifier, batch, options


class Dropping(nn.Module):
    """Batch norm and dropout: state that changes, and random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.Linear(16, 4)
        )

    def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
        logits = self.layers(x)
        return logits if y is None else (logits, F.cross_entropy(logits, y))


class OwnLoss(nn.Module):
    """A loss of the program's own, and a constant that is no buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)
        self.weights = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def forward(self, x: Tensor, y: Tensor) -> Any:
        logits = self.layer(x)
        error = ((logits - F.one_hot(y, 4)) ** 2) * self.weights
        return {"logits": logits, "loss": poptorch.identity_loss(error, "sum")}


class Recurrent(nn.Module):
    """An LSTM and a GRU over the features."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTM(2, 6), nn.GRU(6, 4)

    def forward(self, x: Tensor, y: Tensor) -> Any:
        steps, _ = self.lstm(x.reshape(-1, 4, 2).transpose(0, 1))
        logits = self.gru(steps)[0][-1]
        return logits, F.cross_entropy(logits, y)


class Looping(nn.Module):
    """A loop and a branch on the device."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
        (x,) = poptorch.for_loop(3, lambda v: [torch.tanh(self.layer(v))], [x])
        double, half = (lambda v: [v * 2]), (lambda v: [v / 2])
        return poptorch.cond(x.sum() > 0, double, [x], half, [x])


def values_of(tree: Any) -> list[Tensor]:
    return list(tree_leaves(tree))


def run(
    module: nn.Module, opts: poptorch.Options, *, training: bool, size: int
) -> tuple[poptorch.PoplarExecutor, list[Tensor]]:
    """Three calls; all that was returned, and the weights and buffers after."""
    if training:
        optimizer = poptorch.optim.Adam(module.parameters(), lr=0.01, loss_scaling=8.0)
        model = poptorch.trainingModel(module, opts, optimizer)
    else:
        model = poptorch.inferenceModel(module.eval(), opts)
    seen: list[Tensor] = []
    for seed in range(3):
        x, y = batch(size, seed)
        seen += values_of(model(x, y) if training else model(x))
        seen += [model.getAnchoredTensor(name) for name in opts.anchored_tensors]
    model.copyWeightsToHost()
    state = {**module.state_dict()}
    return model, seen + list(state.values())


Make = Callable[[], poptorch.Options]


def anchored() -> poptorch.Options:
    opts = options()
    opts.anchorTensor("gradient", "Gradient___layer.weight")
    return opts


def automatic() -> poptorch.Options:
    opts = options()
    opts.Training.setAutomaticLossScaling(True)
    return opts


CASES: dict[str, tuple[Callable[[], nn.Module], Make, dict[str, Any]]] = {
    "training": (Dropping, options, {}),
    "inference": (Dropping, options, {"training": False}),
    "accumulation": (Dropping, lambda: options(g=2, d=2), {"size": 16}),
    "replicas": (OwnLoss, lambda: options(r=2), {}),
    "own loss": (OwnLoss, options, {}),
    "anchors": (OwnLoss, anchored, {}),
    "loss scaling": (OwnLoss, automatic, {}),
    "recurrent": (Recurrent, options, {}),
    "loops": (Looping, options, {"training": False}),
    "pipeline": (lambda: Classifier(2), lambda: options(g=3), {"size": 12}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_cached_model_computes_the_same(case: str, tmp_path: Path) -> None:
    make, make_options, said = CASES[case]
    how = {"training": True, "size": 8, **said}
    results: list[list[Tensor]] = []
    for cache in (None, tmp_path, tmp_path):
        torch.manual_seed(3)
        opts = make_options().randomSeed(7)
        opts.enableExecutableCaching(None if cache is None else str(cache))
        model, values = run(make(), opts, **how)
        results.append(values)
    assert is_cached(model)
    assert len(list(tmp_path.iterdir())) > 0
    for plain, written, read in zip(*results, strict=True):
        assert torch.equal(plain, written)
        assert torch.equal(plain, read)
        assert plain.dtype is read.dtype
