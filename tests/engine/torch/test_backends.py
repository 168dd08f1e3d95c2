"""Backends: names are checked, and recurrent layers run with any of them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch
from popple.engine.torch.backends import check_backend
from popple.errors import UsageError


@pytest.mark.parametrize(
    ("backend", "device"), [("inducter", "cpu"), ("replay", "gpu")]
)
def test_unknown_names_are_refused(backend: str, device: str) -> None:
    with pytest.raises(UsageError, match="there is no"):
        check_backend(backend, device)


class Reader(nn.Module):
    """The sum of what an LSTM says of a sequence, as a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return poptorch.identity_loss(self.lstm(x)[0], reduction="sum")


def weight_after_a_step(backend: str, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    monkeypatch.setenv("POPPLE_BACKEND", backend)
    torch.manual_seed(0)
    model = Reader()
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1)
    training = poptorch.trainingModel(model, poptorch.Options(), optimizer)
    training(torch.ones(2, 5, 3))
    return model.state_dict()["lstm.weight_ih_l0"].clone()


def test_an_lstm_trains_alike_with_either_backend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replayed = weight_after_a_step("replay", monkeypatch)
    compiled = weight_after_a_step("inductor", monkeypatch)
    torch.testing.assert_close(compiled, replayed)
