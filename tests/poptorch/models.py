"""Models and plain PyTorch references for the tests of the executor."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch

Optimizers = Callable[[Iterable[Any]], torch.optim.Optimizer]


def options(
    *, d: int = 1, g: int = 1, r: int = 1, mode: Any = None
) -> poptorch.Options:
    """Options without a progress bar: D, G and R as in the specification."""
    made = poptorch.Options().deviceIterations(d).replicationFactor(r)
    made.Training.gradientAccumulation(g)
    made.showCompilationProgressBar(False)
    if mode is not None:
        made.outputMode(mode)
    return made


class Scale(nn.Module):
    """x times a weight, from 1; the loss is the mean of it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        return poptorch.identity_loss(x * self.weight, "mean")


class Classifier(nn.Module):
    """Layers in blocks, one on each IPU, with a skip connection past the second."""

    def __init__(self, num_ipus: int = 1) -> None:
        super().__init__()
        self.num_ipus = num_ipus
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])
        self.out = nn.Linear(8, 4)

    def forward(self, x: Tensor, y: Tensor | None = None) -> tuple[Tensor, Any]:
        start = x
        for index, layer in enumerate(self.layers):
            ipu = index * self.num_ipus // len(self.layers)
            poptorch.Block.start(f"block{ipu}", ipu_id=ipu)
            x = torch.tanh(layer(x))
        logits = self.out(x + start)
        return logits, None if y is None else F.cross_entropy(logits, y)


def batch(size: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Samples and their classes for `Classifier`."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 8, generator=generator)
    return x, torch.randint(0, 4, (size,), generator=generator)


def groups_of(
    x: Tensor, y: Tensor, micro_batch: int, group: int
) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """Micro-batches, in groups that make one update."""
    pairs = list(zip(x.split(micro_batch), y.split(micro_batch), strict=True))
    for start in range(0, len(pairs), group):
        yield pairs[start : start + group]


def train_plainly(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    groups: Iterable[list[tuple[Tensor, Tensor]]],
    *,
    mean: bool = True,
) -> None:
    """What PyTorch does with these micro-batches."""
    for group in groups:
        optimizer.zero_grad()
        for x, y in group:
            loss = module(x, y)[1]
            (loss / len(group) if mean else loss).backward()
        optimizer.step()


def assert_same_weights(module: nn.Module, reference: nn.Module) -> None:
    """Equal to 1e-6, relative."""
    pairs = zip(module.parameters(), reference.parameters(), strict=True)
    for mine, theirs in pairs:
        torch.testing.assert_close(mine.detach(), theirs.detach(), rtol=1e-6, atol=1e-8)


def twins(module: nn.Module) -> tuple[nn.Module, nn.Module]:
    """A module and an equal one."""
    return module, copy.deepcopy(module)
