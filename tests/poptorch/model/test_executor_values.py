"""FP32 results are those of plain PyTorch for the same batches, to 1e-6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import (
    Classifier,
    assert_same_weights,
    batch,
    groups_of,
    options,
    train_plainly,
    twins,
)

Make = Callable[[Any, Any], torch.optim.Optimizer]

OPTIMIZERS: dict[str, Make] = {
    "sgd": lambda package, ws: package.SGD(ws, lr=0.1),
    "momentum": lambda package, ws: package.SGD(ws, lr=0.1, momentum=0.9),
    "adam": lambda package, ws: package.Adam(ws, lr=0.01, weight_decay=0.01),
    "adamw": lambda package, ws: package.AdamW(ws, lr=0.01),
    "rmsprop": lambda package, ws: package.RMSprop(ws, lr=0.01, momentum=0.9),
}
MOMENTUM = OPTIMIZERS["momentum"]


def assert_trains_like_torch(
    opts: poptorch.Options,
    *,
    make: Make = MOMENTUM,
    num_ipus: int = 1,
    mean: bool = True,
    package: Any = poptorch.optim,
) -> None:
    """Three calls of two samples per micro-batch, against a loop in PyTorch."""
    torch.manual_seed(0)
    module, reference = twins(Classifier(num_ipus))
    model = poptorch.trainingModel(module, opts, make(package, module.parameters()))
    plain = make(torch.optim, reference.parameters())
    group = opts.Training.gradient_accumulation * opts.replication_factor
    for seed in range(3):
        x, y = batch(2 * group * opts.device_iterations, seed)
        model(x, y)
        train_plainly(reference, plain, groups_of(x, y, 2, group), mean=mean)
    assert_same_weights(module, reference)


def train_once(module: nn.Module, x: Tensor, y: Tensor, lr: float) -> None:
    """One step of SGD in plain PyTorch."""
    optimizer = torch.optim.SGD(module.parameters(), lr=lr)
    train_plainly(module, optimizer, [[(x, y)]])


def test_inference() -> None:
    module = Classifier()
    model = poptorch.inferenceModel(module, options())
    x, y = batch(6)
    logits, loss = model(x, y)
    expected = module(x, y)
    torch.testing.assert_close(logits, expected[0].detach(), rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(loss, expected[1].detach(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training(name: str) -> None:
    assert_trains_like_torch(options(), make=OPTIMIZERS[name])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_with_torchs_own_optimizers(name: str) -> None:
    assert_trains_like_torch(options(), make=OPTIMIZERS[name], package=torch.optim)


def test_device_iterations_are_updates() -> None:
    assert_trains_like_torch(options(d=3))


def test_accumulation() -> None:
    assert_trains_like_torch(options(g=4))


def test_accumulated_micro_batches_train_like_one_batch() -> None:
    module, reference = twins(Classifier())
    x, y = batch(8)
    sgd = poptorch.optim.SGD(module.parameters(), lr=0.1)
    poptorch.trainingModel(module, options(g=4), sgd)(x, y)
    train_once(reference, x, y, lr=0.1)
    assert_same_weights(module, reference)


@pytest.mark.parametrize("name", ["Mean", "Sum"])
def test_replication(name: str) -> None:
    opts = options(g=2, r=2)
    kind = getattr(poptorch.ReductionType, name)
    opts.Training.accumulationAndReplicationReductionType(kind)
    assert_trains_like_torch(opts, mean=name == "Mean")


@pytest.mark.parametrize("num_ipus", [2, 4])
def test_pipelined(num_ipus: int) -> None:
    assert_trains_like_torch(options(g=8), num_ipus=num_ipus)


def test_pipelined_with_replicas_and_iterations() -> None:
    assert_trains_like_torch(options(d=2, g=4, r=2), num_ipus=2)


@pytest.mark.parametrize("num_ipus", [2, 4])
def test_sharded(num_ipus: int) -> None:
    opts = options().setExecutionStrategy(poptorch.ShardedExecution())
    assert_trains_like_torch(opts, num_ipus=num_ipus)


def test_pipelined_inference() -> None:
    module = Classifier(num_ipus=4)
    model = poptorch.inferenceModel(module, options(d=4))
    x, _ = batch(8)
    torch.testing.assert_close(model(x)[0], module(x)[0].detach(), rtol=1e-6, atol=1e-8)


def test_max_grad_norm() -> None:
    torch.manual_seed(0)
    module, reference = twins(Classifier())
    sgd = poptorch.optim.SGD(module.parameters(), lr=0.1, max_grad_norm=0.01)
    model = poptorch.trainingModel(module, options(), sgd)
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    for seed in range(3):
        x, y = batch(4, seed)
        model(x, y)
        plain.zero_grad()
        reference(x, y)[1].backward()
        torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.01)
        plain.step()
    assert_same_weights(module, reference)


class Cnn(nn.Module):
    """Convolution and batch norm, whose buffers move while training."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.out = nn.Linear(4, 3)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        features = F.relu(self.norm(self.conv(x))).mean((2, 3))
        return features, F.cross_entropy(self.out(features), y)


def test_batch_norm_statistics_are_those_of_micro_batches() -> None:
    torch.manual_seed(0)
    module, reference = twins(Cnn())
    x, y = torch.rand(8, 1, 6, 6), torch.randint(0, 3, (8,))
    sgd = poptorch.optim.SGD(module.parameters(), lr=0.1)
    poptorch.trainingModel(module, options(g=2), sgd)(x, y)
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    train_plainly(reference, plain, groups_of(x, y, 4, 2))
    assert_same_weights(module, reference)
    mine, theirs = dict(module.named_buffers()), dict(reference.named_buffers())
    for name in ("norm.running_mean", "norm.running_var"):
        torch.testing.assert_close(mine[name], theirs[name], rtol=1e-6, atol=1e-8)
    # Integer buffers are constants.
    assert mine["norm.num_batches_tracked"].item() == 0


def test_parameters_outside_the_optimizer_stay() -> None:
    module, reference = twins(Classifier())
    assert isinstance(module, Classifier)
    module.layers[0].requires_grad_(False)
    listed = [p for n, p in module.named_parameters() if not n.startswith("out")]
    sgd = poptorch.optim.SGD(listed, lr=1.0)
    poptorch.trainingModel(module, options(), sgd)(*batch(4))
    moved = [
        name
        for (name, mine), theirs in zip(
            module.named_parameters(), reference.parameters(), strict=True
        )
        if not torch.equal(mine, theirs)
    ]
    assert {name.rpartition(".")[0] for name in moved} == {
        "layers.1",
        "layers.2",
        "layers.3",
    }


def test_the_default_optimizer_is_sgd() -> None:
    module, reference = twins(Classifier())
    x, y = batch(4)
    poptorch.trainingModel(module, options())(x, y)
    train_once(reference, x, y, lr=0.01)
    assert_same_weights(module, reference)


def test_tied_weights_train_like_torch() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(6, 4)
            self.out = nn.Linear(4, 6, bias=False)
            self.out.weight = self.embed.weight

        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            logits = self.out(self.embed(x))
            return logits, F.cross_entropy(logits, y)

    module, reference = twins(Tied())
    x, y = torch.tensor([0, 1, 5]), torch.tensor([1, 5, 2])
    sgd = poptorch.optim.SGD(module.parameters(), lr=0.1)
    poptorch.trainingModel(module, options(), sgd)(x, y)
    train_once(reference, x, y, lr=0.1)
    assert_same_weights(module, reference)
    assert isinstance(module, Tied)
    assert module.out.weight is module.embed.weight


def test_a_model_that_marks_its_tensors_for_no_gradient() -> None:
    class Detached(Classifier):
        def forward(self, x: Tensor, y: Tensor | None = None) -> tuple[Tensor, Any]:
            with torch.no_grad():
                x = self.layers[0](x)
            return super().forward(x, y)

    module, reference = twins(Detached())
    x, y = batch(4)
    poptorch.trainingModel(module, options())(x, y)
    train_once(reference, x, y, lr=0.01)
    assert_same_weights(module, reference)
