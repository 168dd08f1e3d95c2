"""Wrappers that unwrap a module themselves, for tied weights and for pickling."""

from __future__ import annotations

import pickle

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from tests.programs.poptorch.plain import assert_equal_state, batch, made, quiet, step


class Tied(nn.Module):
    """An embedding that is its own output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 5)
        self.head = nn.Linear(5, 7, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("shift", torch.zeros(7))

    def forward(self, tokens: Tensor) -> Tensor:
        scores = self.head(self.table(tokens)) + self.shift
        return F.cross_entropy(scores[:-1], tokens[1:])


def test_a_destroyed_model_is_plain_again() -> None:
    torch.manual_seed(0)
    module = Tied()
    twin = pickle.loads(pickle.dumps(module))
    tokens = torch.tensor([1, 2, 3, 2, 1, 0])
    model = poptorch.trainingModel(
        module, quiet(), poptorch.optim.SGD(module.parameters(), lr=0.5)
    )
    model(tokens)
    model.destroy()
    plain = poptorch._impl.unwrapIfWrapped(module)
    assert type(plain) is Tied
    for tensor in (*plain.parameters(), *plain.buffers()):
        assert type(tensor) in (nn.Parameter, torch.Tensor)
    sgd = torch.optim.SGD(twin.parameters(), lr=0.5)
    twin(tokens).backward()
    sgd.step()
    assert_equal_state(plain, twin)


def test_classes_lead_to_the_plain_ones() -> None:
    module = Tied()
    model = poptorch.trainingModel(module, quiet())
    assert type(module).__bases__[0] is Tied
    assert type(module.head.weight).__bases__[0] is nn.Parameter
    assert type(module.shift).__bases__[0] is torch.Tensor
    model.destroy()


def test_a_module_is_pickled_between_steps() -> None:
    net, twin = made()

    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return F.cross_entropy(self.net(x), y)

    model = poptorch.trainingModel(WithLoss(), quiet())
    sgd = torch.optim.SGD(twin.parameters(), lr=0.01)
    model(*batch())
    step(twin, sgd, *batch())
    copied = pickle.loads(pickle.dumps(net))
    assert_equal_state(copied, twin)
    model(*batch(seed=5))
    step(twin, sgd, *batch(seed=5))
    assert_equal_state(net, twin)
