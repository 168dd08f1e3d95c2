"""Memory that nobody reads any more is written to; all other memory is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from popple.engine.torch import Replay, build_replay
from popple.engine.torch.replay import below_autograd

X = torch.tensor([[1.0, -2.0], [3.0, -4.0]])


def replay(function: Callable[..., list[Tensor]], *arguments: Tensor) -> Replay:
    return build_replay(make_fx(function, tracing_mode="fake")(*arguments))


def run(step: Replay, *arguments: Tensor) -> list[Any]:
    with torch.no_grad(), below_autograd():
        return step([argument.clone() for argument in arguments])


def num_overwriting(step: Replay) -> int:
    """Operators that are told where to write."""
    return (step.function.__doc__ or "").count("out=v_")


def added(x: Tensor) -> list[Tensor]:
    return [(x.exp() + x.sin()).relu()]


def test_results_go_where_operands_were() -> None:
    step = replay(added, X)
    assert num_overwriting(step) == 2
    assert torch.equal(run(step, X)[0], added(X)[0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [x + 1],  # arguments are the caller's
        lambda x: [y := x.exp(), y + 1],  # a result is the caller's too
        lambda x: [(y := x.exp()) + 1, y.sin()],  # read again later
        lambda x: [(y := x.exp()).t() + 1, y[0] * 2],  # through a view
        lambda x: [(y := x.exp()) + y.t()],  # another view of the same memory
        lambda x: [x.exp()[0] + x],  # of another shape
        lambda x: [x.exp().long() + x],  # of another type
        lambda x: [x.exp().t() @ x + x.exp()[:, :1].expand(2, 2)],
    ],
    ids=["argument", "result", "read", "view", "overlap", "shape", "type", "repeated"],
)
def test_values_are_those_without(function: Callable[..., list[Tensor]]) -> None:
    step = replay(function, X)
    for mine, theirs in zip(run(step, X), function(X), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize(
    "function",
    [lambda x: [x + 1], lambda x: [y := x.exp(), y + 1], lambda x: [x.exp()[0] + x]],
    ids=["argument", "result", "shape"],
)
def test_what_is_not_free_is_not_written_to(
    function: Callable[..., list[Tensor]],
) -> None:
    assert num_overwriting(replay(function, X)) == 0


def test_arguments_stay_as_they_were() -> None:
    step, x = replay(added, X), X.clone()
    with torch.no_grad(), below_autograd():
        step([x])
    assert torch.equal(x, X)


def test_random_numbers_are_drawn_as_before() -> None:
    def function(x: Tensor) -> list[Tensor]:
        return [F.dropout(x.exp(), 0.5, training=True) + x]

    step = replay(function, X)
    torch.manual_seed(1)
    (mine,) = run(step, X)
    torch.manual_seed(1)
    assert torch.equal(mine, function(X)[0])


def test_a_step_that_changes_shapes_in_place_is_left_alone() -> None:
    def function(x: Tensor) -> list[Tensor]:
        y = x.exp()
        y.t_()
        return [y + 1]

    step = replay(function, X)
    assert num_overwriting(step) == 0
    assert torch.equal(run(step, X)[0], X.exp().t() + 1)
