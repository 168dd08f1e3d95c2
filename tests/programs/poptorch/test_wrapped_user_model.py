"""An executor whose model wraps the user's: both have names of their own."""

from __future__ import annotations

import copy
import io
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from tests.programs.poptorch.plain import (
    Net,
    assert_equal_state,
    batch,
    made,
    quiet,
    step,
)


class Wrapper(nn.Module):
    """Adds a loss to a network that it holds under another name."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.inner(x)
        return logits, F.cross_entropy(logits, y)


def wrapped(net: Net, optimizer: Any) -> poptorch.PoplarExecutor:
    return poptorch._impl.PoplarExecutor(
        model=Wrapper(copy.copy(net)),
        options=quiet(),
        training=True,
        optimizer=optimizer,
        user_model=net,
        poptorch_version=poptorch.__version__,
    )


def test_weights_buffers_and_state_find_each_other() -> None:
    net, twin = made()
    model = wrapped(net, poptorch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
    sgd = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)
    for seed in range(3):
        _, loss = model(*batch(seed=seed))
        torch.testing.assert_close(loss, step(twin, sgd, *batch(seed=seed)))
    assert_equal_state(net, twin)
    assert model.model is net
    assert list(model.state_dict()) == list(twin.state_dict())


def test_detaching_and_attaching_loses_nothing() -> None:
    net, twin = made()
    model = wrapped(net, poptorch.optim.Adam(net.parameters(), lr=0.01))
    adam = torch.optim.Adam(twin.parameters(), lr=0.01)
    for seed in range(3):
        model(*batch(seed=seed))
        step(twin, adam, *batch(seed=seed))
        model.detachFromDevice()
        assert not model._is_attached
    assert_equal_state(net, twin)


def test_a_checkpoint_goes_to_the_device() -> None:
    net, twin = made()
    model = wrapped(net, poptorch.optim.SGD(net.parameters(), lr=0.1))
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    model(*batch())
    file.seek(0)
    model.load_state_dict(torch.load(file))
    logits, _ = model(*batch())
    torch.testing.assert_close(logits, twin(batch()[0]))


def test_parameter_groups_keep_their_settings() -> None:
    net, twin = made()

    def optimizer(kind: Any, model: nn.Module) -> Any:
        slow = [p for n, p in model.named_parameters() if n.endswith("bias")]
        fast = [p for n, p in model.named_parameters() if not n.endswith("bias")]
        groups = [{"params": slow, "lr": 0.01}, {"params": fast, "weight_decay": 0.1}]
        return kind(groups, lr=0.1)

    model = wrapped(net, optimizer(poptorch.optim.SGD, net))
    sgd = optimizer(torch.optim.SGD, twin)
    for seed in range(2):
        model(*batch(seed=seed))
        step(twin, sgd, *batch(seed=seed))
    assert_equal_state(net, twin)
