"""Recurrent layers in a traced step: torch's values and gradients, one op each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from popple.capture.torch import recurrent, recurrent_tape
from popple.capture.torch.recurrent import gru_layer
from popple.graph import Phase
from tests.capture.torch.tracing import kinds, lower_traced, of_kind, replayed, trace

X = torch.rand(7, 2, 4)
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "deep, both ways": {"num_layers": 2, "bidirectional": True},
    "batch first, no bias": {"batch_first": True, "bias": False},
    "dropout in evaluation": {"num_layers": 2, "dropout": 0.5},
}


class Reader(nn.Module):
    """The last output of a layer, and a loss of it."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        outputs = self.layer(x)[0]
        return F.mse_loss(outputs, torch.ones_like(outputs))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_values_and_gradients_are_torchs(kind: type[nn.Module], form: str) -> None:
    reader = Reader(kind(4, 5, **FORMS[form])).eval()
    step = trace(reader, X, train=True)
    weights = list(reader.parameters())
    loss, *gradients = replayed(step, *weights, X)
    expected = reader(X)
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradients, list(torch.autograd.grad(expected, weights)))
    assert "generic" not in kinds(lower_traced(step).graph)


def test_a_training_step_runs_a_layer_once(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Reader(nn.LSTM(4, 5))
    step = trace(layer, X, train=True)
    runs: list[str] = []

    def counted(*arguments: Any) -> recurrent_tape.Tape:
        runs.append(arguments[-1])
        return recurrent_tape.record_tape(*arguments)

    monkeypatch.setattr(recurrent, "record_tape", counted)
    replayed(step, *layer.parameters(), X)
    assert runs == ["lstm"]


def test_a_second_gradient_runs_the_layer_again() -> None:
    weights = [torch.rand(20, 4), torch.rand(20, 5)]
    arguments = X, [torch.zeros(2, 5), torch.zeros(2, 5)], weights, "lstm"
    *found, kept = torch.ops.popple.recurrent(*arguments, True)
    ones = [torch.ones_like(each) for each in found]
    first, second = (
        torch.ops.popple.recurrent_backward(ones, kept, *arguments) for _ in range(2)
    )
    torch.testing.assert_close(first, second)


def test_a_layer_is_one_op_and_its_gradient_another() -> None:
    step = trace(Reader(nn.LSTM(4, 5)), X, train=True)
    graph = lower_traced(step).graph
    (layer,), (gradient,) = (
        of_kind(graph, "recurrent"),
        of_kind(graph, "recurrent_grad"),
    )
    # Four gates, the cell before and its tanh are kept for every step.
    assert str(graph.type_of(layer.outputs[-1])) == "f32[7,2,30]"
    assert layer.outputs[-1] in gradient.inputs
    assert (layer.attrs["cell"], gradient.phase) == ("lstm", Phase.BACKWARD)


def test_without_a_gradient_nothing_is_kept() -> None:
    graph = lower_traced(trace(nn.GRU(4, 5), X)).graph
    (layer,) = of_kind(graph, "recurrent")
    assert [graph.type_of(name).shape for name in layer.outputs] == [(7, 2, 5), (2, 5)]


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_projected_layers_are_traced_by_torch() -> None:
    graph = lower_traced(trace(nn.LSTM(4, 5, proj_size=3), X)).graph
    assert not of_kind(graph, "recurrent")


def test_a_reset_before_the_product_changes_the_result() -> None:
    weights = [torch.rand(15, 4), torch.rand(15, 5)]
    after, before = (
        gru_layer(X, [torch.ones(2, 5)], weights, resets_after=flag)[0]
        for flag in (True, False)
    )
    # One gate of each is the update: they are ordered reset, update, candidate.
    assert after.shape == before.shape == (7, 2, 5)
    assert not torch.allclose(after, before)
