"""A small network, and what plain PyTorch makes of it."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch


class Net(nn.Module):
    """Two layers and a running mean of what passes through, 4 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 8, bias=False)  # the mean would take it out
        self.norm = nn.BatchNorm1d(8)
        self.out = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.tanh(self.norm(self.fc(x))))


def made(seed: int = 0) -> tuple[Net, Net]:
    """A network and its twin."""
    torch.manual_seed(seed)
    net = Net()
    return net, copy.deepcopy(net)


def batch(size: int = 5, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Samples and their classes."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 6, generator=generator)
    return x, torch.randint(0, 4, (size,), generator=generator)


def quiet() -> poptorch.Options:
    """Options without a progress bar."""
    return poptorch.Options().showCompilationProgressBar(False)


def step(net: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> Any:
    """One update by plain PyTorch; the loss before it."""
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def assert_equal_state(mine: nn.Module, theirs: nn.Module) -> None:
    """Weights and buffers agree to 1e-6."""
    state = mine.state_dict()
    for name, tensor in theirs.state_dict().items():
        if tensor.is_floating_point():
            torch.testing.assert_close(state[name], tensor, rtol=1e-6, atol=1e-7)
