"""PyTorch's layers are what other front ends are compared with."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from popple.graph import Graph
from tests.capture.shared_layers import NAMES, cost_of, read_shared
from tests.capture.torch.tracing import lower


class GlobalMean(nn.Module):
    """The mean of every channel."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


class Classifier(nn.Module):
    """Layers and their cross-entropy."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(self.layers(x), labels)


def make(name: str) -> Graph:
    labels = torch.zeros(16, dtype=torch.long)
    if name == "dense":
        layers = nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)
        return lower(Classifier(*layers), torch.rand(16, 784), labels, train=True)
    layers = (
        nn.Conv2d(3, 32, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, 1, 1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        GlobalMean(),
        nn.Linear(64, 10),
    )
    return lower(Classifier(*layers), torch.rand(16, 3, 28, 28), labels, train=True)


@pytest.mark.parametrize("name", NAMES)
def test_the_stored_graphs_are_what_pytorch_is_captured_as(name: str) -> None:
    assert cost_of(make(name)) == cost_of(read_shared(name))
