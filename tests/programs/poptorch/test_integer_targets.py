"""Classes and indices in every integer type, as programs for the device pass them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from tests.poptorch.running import on_ipu
from tests.programs.poptorch.plain import assert_equal_state, batch, made, quiet, step

WIDE = torch.tensor([1, 0, 3, 4])
X = torch.linspace(-1, 1, 20).reshape(4, 5)
TABLE = torch.arange(15.0).reshape(5, 3)

USES: dict[str, Any] = {
    "cross_entropy": lambda t: F.cross_entropy(X, t, label_smoothing=0.1),
    "nll_loss": lambda t: F.nll_loss(X, t, weight=torch.arange(5.0) + 1),
    "nll_loss module": lambda t: nn.NLLLoss(reduction="sum")(X, t),
    "multi_margin_loss": lambda t: F.multi_margin_loss(X, target=t),
    "embedding": lambda t: F.embedding(t, TABLE),
    "embedding_bag": lambda t: F.embedding_bag(t.reshape(2, 2), TABLE),
    "gather": lambda t: X.gather(1, t.unsqueeze(1)),
    "scatter": lambda t: torch.zeros(4, 5).scatter(1, t.unsqueeze(1), X),
    "index_select": lambda t: torch.index_select(X, dim=1, index=t),
    "index_add": lambda t: torch.zeros(4, 5).index_add(1, t, X[:, :4]),
    "index_copy": lambda t: torch.zeros(4, 5).index_copy(1, t, X[:, :4]),
    "index_fill": lambda t: X.index_fill(1, t, 2.0),
    "take": lambda t: torch.take(X, t),
    "take_along_dim": lambda t: torch.take_along_dim(X, t.unsqueeze(1), 1),
    "one_hot": lambda t: F.one_hot(t, 5),
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_indices_may_be_narrow(name: str, dtype: torch.dtype) -> None:
    found = on_ipu(USES[name], WIDE.to(dtype))
    torch.testing.assert_close(found, USES[name](WIDE), check_dtype=False)


def test_brackets_take_narrow_integers() -> None:
    assert on_ipu(lambda x, t: x[t], X[0], WIDE.to(torch.int16)).tolist() == (
        X[0][WIDE].tolist()
    )


class Classifier(nn.Module):
    """A network with its loss."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.net(x), y)


def test_a_model_trains_on_int32_classes() -> None:
    net, twin = made()
    sgd = torch.optim.SGD(twin.parameters(), lr=0.1)
    model = poptorch.trainingModel(
        Classifier(net), quiet(), poptorch.optim.SGD(net.parameters(), lr=0.1)
    )
    for seed in range(2):
        x, y = batch(seed=seed)
        loss = model(x, y.to(torch.int32))
        torch.testing.assert_close(loss, step(twin, sgd, x, y))
    assert_equal_state(net, twin)
