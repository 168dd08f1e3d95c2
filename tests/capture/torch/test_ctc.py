"""CTC in a traced step: torch's values and gradients, with shapes known beforehand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from popple.errors import CaptureError
from popple.graph import Phase
from tests.capture.torch.tracing import kinds, lower_traced, of_kind, replayed, trace

T, N, C, S = 6, 3, 4, 5
TARGETS = torch.tensor([[1, 2, 3, 1, 2], [3, 3, 1, 1, 1], [2, 1, 1, 1, 1]])
INPUT_LENGTHS = torch.tensor([6, 5, 4])
TARGET_LENGTHS = torch.tensor([3, 2, 1])


class Reader(nn.Module):
    """CTC loss of its weight as logits."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(T, N, C, generator=generator))
        self.settings = settings

    def forward(self, *arguments: Any) -> Tensor:
        loss = F.ctc_loss(self.weight.log_softmax(-1), *arguments, **self.settings)
        return loss


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_it_is_torchs(reduction: str) -> None:
    reader = Reader(reduction=reduction)
    arguments = (TARGETS, INPUT_LENGTHS, TARGET_LENGTHS)
    step = trace(reader, *arguments, train=True)
    loss, gradient = replayed(step, reader.weight, *arguments)
    expected = reader(*arguments)
    expected.sum().backward()
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradient, reader.weight.grad)
    lower_traced(step)


def test_lengths_are_read_when_the_step_runs() -> None:
    reader = Reader()
    step = trace(reader, TARGETS, INPUT_LENGTHS, TARGET_LENGTHS, train=True)
    longer = torch.tensor([5, 2, 1])
    loss, _ = replayed(step, reader.weight, TARGETS, INPUT_LENGTHS, longer)
    torch.testing.assert_close(loss, reader(TARGETS, INPUT_LENGTHS, longer).detach())


def test_lengths_may_be_numbers() -> None:
    reader = Reader()
    lengths: Any = ((6, 5, 4), (3, 2, 1))

    def forward(targets: Tensor) -> Tensor:
        return F.ctc_loss(reader.weight.detach(), targets, *lengths)

    (loss,) = replayed(trace(forward, TARGETS), TARGETS)
    torch.testing.assert_close(loss, forward(TARGETS))


def test_impossible_targets_can_count_as_nothing() -> None:
    reader = Reader(zero_infinity=True)
    # Three symbols do not fit into two steps.
    arguments = (TARGETS, torch.tensor([2, 5, 4]), TARGET_LENGTHS)
    step = trace(reader, *arguments, train=True)
    loss, gradient = replayed(step, reader.weight, *arguments)
    expected = reader(*arguments)
    expected.backward()
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradient, reader.weight.grad)


def test_one_sequence_needs_no_batch() -> None:
    def forward(x: Tensor, targets: Tensor) -> Tensor:
        return F.ctc_loss(x, targets, torch.tensor(6), torch.tensor(3))

    x = torch.randn(T, C).log_softmax(-1)
    targets = TARGETS[0, :3]
    (loss,) = replayed(trace(forward, x, targets), x, targets)
    torch.testing.assert_close(loss, forward(x, targets))


def test_targets_in_one_row_are_refused() -> None:
    reader = Reader()
    with pytest.raises(CaptureError, match="targets in one row"):
        trace(reader, torch.ones(6).long(), INPUT_LENGTHS, TARGET_LENGTHS)


def test_the_machine_makes_the_gradient_with_the_loss() -> None:
    step = trace(Reader(), TARGETS, INPUT_LENGTHS, TARGET_LENGTHS, train=True)
    graph = lower_traced(step).graph
    (loss,) = of_kind(graph, "ctc_loss")
    assert graph.type_of(loss.outputs[1]).shape == (T, N, C)
    (scaled,) = [op for op in graph.ops if loss.outputs[1] in op.inputs]
    assert (scaled.kind, scaled.phase) == ("mul", Phase.BACKWARD)
    assert "generic" not in kinds(graph)
