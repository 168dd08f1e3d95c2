"""Marks are dropped from a replay wherever nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from popple.capture.torch import mark
from popple.engine.torch import Replay, build_replay
from popple.engine.torch.replay import below_autograd
from tests.capture.torch.tracing import trace

X = torch.tensor([[1.0, 2.0]])


def marked(x: Tensor) -> Tensor:
    return mark(x, "note", "")


def replay(function: Callable[..., Any], x: Tensor = X) -> Replay:
    return build_replay(trace(function, x).graph_module)


def run(step: Replay, *arguments: Tensor) -> list[Any]:
    with torch.no_grad(), below_autograd():
        return step(arguments)


def has_mark(step: Replay) -> bool:
    return "popple_mark" in (step.function.__doc__ or "")


def test_a_mark_disappears() -> None:
    step = replay(lambda x: marked(marked(x.neg()).abs()))
    assert not has_mark(step)
    assert torch.equal(run(step, X)[0], X)


def test_a_marked_argument_is_returned_as_a_copy() -> None:
    step = replay(lambda x: marked(x).view(2))
    result = run(step, X)[0]
    assert not has_mark(step)
    assert result.data_ptr() != X.data_ptr()


def test_results_that_were_the_same_before_marking_stay_apart() -> None:
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.neg()
        return y, marked(y)

    first, second = run(replay(forward), X)
    assert first.data_ptr() != second.data_ptr()


def test_writing_to_a_marked_tensor_leaves_the_other_alone() -> None:
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.neg()
        return y, marked(y).add_(1)

    step = replay(forward)
    assert has_mark(step)
    first, second = run(step, X)
    assert torch.equal(first, -X)
    assert torch.equal(second, 1 - X)


def test_a_tensor_with_repeated_memory_keeps_its_mark() -> None:
    """What follows was traced for the dense copy that the mark makes."""
    step = replay(lambda x: marked(x.expand(3, 2)).view(6))
    assert torch.equal(run(step, X)[0], torch.tensor([1.0, 2, 1, 2, 1, 2]))
