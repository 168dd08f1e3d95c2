"""Views that show a tensor as it is are dropped, others are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.fx import Graph
from torch.fx.experimental.proxy_tensor import make_fx

from popple.engine.torch.rewrites.views import drop_idle_views

X = torch.arange(6.0).view(2, 3)


def operators(function: Callable[[Tensor], Tensor], x: Tensor) -> list[str]:
    """The operators left of a function."""
    graph: Graph = make_fx(function, tracing_mode="fake")(x).graph
    drop_idle_views(graph)
    graph.eliminate_dead_code()
    return [node.name for node in graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.t().t().neg(),
        lambda x: x.view(2, 3).neg(),
        lambda x: x.expand(2, 3).neg(),
        lambda x: x.unsqueeze(0).squeeze(0).neg(),
        lambda x: x[:, :].neg(),
    ],
    ids=["transpose", "view", "expand", "squeeze", "slice"],
)
def test_idle(function: Callable[[Tensor], Tensor]) -> None:
    assert operators(function, X) == ["neg"]


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: x.t().neg(), torch.ones(3, 3)),  # the same shape, other strides
        (lambda x: x.view(3, 2).neg(), X),
        (lambda x: x[1:].neg(), X),
        (lambda x: x.conj().resolve_conj(), torch.ones(2, dtype=torch.complex64)),
    ],
    ids=["transpose", "view", "slice", "conjugate"],
)
def test_not_idle(function: Callable[[Tensor], Tensor], x: Tensor) -> None:
    assert len(operators(function, x)) == 2
