"""A sequence model whose encoder, decoder and output layer have one embedding."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from tests.programs.poptorch.plain import quiet


class Translator(nn.Module):
    """The embedding is one module under three names, tied to the output's weight."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Embedding(7, 4)
        self.encoder = nn.ModuleDict({"tokens": self.shared, "layer": nn.Linear(4, 4)})
        self.decoder = nn.ModuleDict({"tokens": self.shared, "layer": nn.Linear(4, 4)})
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.shared.weight

    def forward(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        context = self.encoder["layer"](self.encoder["tokens"](source)).mean(1, True)
        hidden = self.decoder["layer"](self.decoder["tokens"](target) + context)
        logits = self.head(hidden)
        return logits, F.cross_entropy(logits.flatten(0, 1), target.flatten())


def test_tied_weights_train_as_in_plain_torch_and_stay_tied() -> None:
    torch.manual_seed(0)
    model = Translator()
    plain = copy.deepcopy(model)
    source, target = torch.randint(7, (2, 5)), torch.randint(7, (2, 3))
    runner = poptorch.trainingModel(
        model, quiet(), poptorch.optim.SGD(model.parameters(), lr=0.1)
    )
    stock = torch.optim.SGD(plain.parameters(), lr=0.1)
    for _ in range(3):
        _, loss = runner(source, target)
        stock.zero_grad()
        _, expected = plain(source, target)
        expected.backward()
        stock.step()
        assert loss.item() == expected.item()
    runner.copyWeightsToHost()
    assert model.head.weight is model.shared.weight
    assert torch.equal(model.head.weight, plain.head.weight)
