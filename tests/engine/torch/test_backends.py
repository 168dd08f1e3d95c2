"""Backends: names are checked, and recurrent layers run with any of them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch
from popple.engine.torch.backends import Backend, check_backend
from popple.errors import UsageError


@pytest.mark.parametrize(
    ("backend", "device"), [("inducter", "cpu"), ("replay", "gpu")]
)
def test_unknown_names_are_refused(backend: str, device: str) -> None:
    with pytest.raises(UsageError, match="there is no"):
        check_backend(backend, device)


def test_only_a_gpu_keeps_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = torch.ones(2, dtype=torch.bfloat16)
    assert Backend().typed(tensor).dtype is torch.float32
    with pytest.raises(UsageError, match="--device cuda"):
        Backend(keeps_bfloat16=True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    backend = Backend(device="cuda", keeps_bfloat16=True)
    assert backend.typed(tensor) is tensor
    assert backend.typed(tensor.double()).dtype is torch.float32


def test_a_model_in_bfloat16_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    model = poptorch.inferenceModel(nn.Linear(2, 2).bfloat16(), poptorch.Options())
    for _ in range(2):
        assert model(torch.ones(1, 2).bfloat16()).dtype is torch.float32
    assert sum("bfloat16" in record.message for record in caplog.records) == 1


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
