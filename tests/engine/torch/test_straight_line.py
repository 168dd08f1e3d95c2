"""Graphs as straight-line Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from popple.engine.torch.straight_line import straight_line

X = torch.tensor([1.0, -2.0])


def function_of(graph: Graph, root: nn.Module | None = None) -> Callable[..., Any]:
    return straight_line(GraphModule(root or nn.Module(), graph))


def test_a_traced_function_gives_what_it_gave() -> None:
    def function(x: Tensor, y: Tensor) -> list[Tensor]:
        values, places = torch.cat([x, y]).sort(dim=0)
        return [values.clamp(max=math.inf), places, x.to(torch.float64)]

    made = straight_line(make_fx(function)(X, X + 1))
    for mine, theirs in zip(made(X, X + 1), function(X, X + 1), strict=True):
        assert mine.dtype is theirs.dtype
        assert torch.equal(mine, theirs)


def test_its_source_names_the_operators() -> None:
    made = straight_line(make_fx(lambda x: [x.exp()])(X))
    assert "v_exp = aten_exp_default" in (made.__doc__ or "")


def test_constants_and_arguments_of_every_kind() -> None:
    root = nn.Module()
    root.register_buffer("three", torch.tensor(3.0))
    graph = Graph()
    x = graph.placeholder("x")
    three = graph.get_attr("three")
    seen: list[Any] = []

    def note(*args: Any, **kwargs: Any) -> Any:
        seen.append((args, kwargs))
        return args[0] * args[1]

    arguments = (x, three, (1,), [2.5], slice(0, None), {"a": x}, math.nan, None)
    graph.output([graph.call_function(note, arguments, {"name": "text"})])
    (result,) = function_of(graph, root)(X)
    (args, kwargs) = seen[0]
    assert torch.equal(result, 3 * X)
    assert args[2:5] == ((1,), [2.5], slice(0, None))
    assert args[5]["a"] is X
    assert math.isnan(args[6])
    assert kwargs == {"name": "text"}


def test_tensors_are_let_go_of_after_their_last_use() -> None:
    made = straight_line(make_fx(lambda x: [x.exp().sin().cos()])(X))
    assert (made.__doc__ or "").count(" = None") == 2  # exp and sin
