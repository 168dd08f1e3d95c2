"""Loops and branches: traced once, in the graph as such."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from popple.capture.torch import ActiveTrace, TracedLoop, TracedStep
from popple.errors import CaptureError
from popple.graph import Graph
from tests.capture.torch.tracing import kinds, lower_traced, replayed, trace

X = torch.arange(4.0)


class Program(nn.Module):
    """A weight, a buffer that counts, and a function that uses them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 2.0))
        self.register_buffer("count", torch.zeros(4))
        self.function = function
        self.trace: ActiveTrace | None = None

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def traced(function: Callable[..., Any]) -> TracedStep:
    module = Program(function)
    return trace(module, X, listener=lambda found: setattr(module, "trace", found))


def repeat(module: Any, count: int, body: Any, *inputs: Tensor) -> list[Tensor]:
    return module.trace.control.repeat(count, body, list(inputs))


def graph_of(function: Callable[..., Any]) -> Graph:
    return lower_traced(traced(function)).graph


def test_a_body_is_traced_once_and_run_as_often_as_it_should() -> None:
    calls: list[int] = []

    def program(module: Any, x: Tensor) -> Tensor:
        def body(values: list[Tensor]) -> list[Tensor]:
            calls.append(1)
            return [values[0] * module.weight + 1]

        return repeat(module, 5, body, x)[0]

    step = traced(program)
    assert len(calls) == 1
    expected = X
    for _ in range(5):
        expected = expected * 2 + 1
    weight, count = torch.full((4,), 2.0), torch.zeros(4)
    assert torch.equal(replayed(step, weight, count, X)[0], expected)
    graph = lower_traced(step).graph
    (loop,) = [op for op in graph.ops if op.kind == "repeat"]
    assert loop.attrs["count"] == 5
    body = graph.functions[str(loop.attrs["function"])]
    assert kinds(body)[:2] == ["mul", "add"]


def test_a_thousand_rounds_are_the_graph_of_ten() -> None:
    def program(count: int) -> Callable[..., Any]:
        return lambda module, x: repeat(module, count, lambda v: [v[0].sin()], x)[0]

    ten, thousand = graph_of(program(10)), graph_of(program(1000))
    assert ten.functions == thousand.functions
    assert kinds(ten) == kinds(thousand)


def test_loops_stand_inside_loops() -> None:
    def program(module: Any, x: Tensor) -> Tensor:
        def inner(values: list[Tensor]) -> list[Tensor]:
            return [values[0] + 1]

        def outer(values: list[Tensor]) -> list[Tensor]:
            return [repeat(module, 3, inner, values[0])[0] * 2]

        return repeat(module, 2, outer, x)[0]

    step = traced(program)
    result = replayed(step, torch.zeros(4), torch.zeros(4), X)[0]
    assert torch.equal(result, ((X + 3) * 2 + 3) * 2)
    assert len(lower_traced(step).graph.functions) == 2


def test_memory_that_a_body_overwrites_is_carried() -> None:
    def program(module: Any, x: Tensor) -> Tensor:
        def body(values: list[Tensor]) -> list[Tensor]:
            module.count.add_(1)
            return [values[0] + module.count]

        return repeat(module, 3, body, x)[0] + module.count

    step = traced(program)
    count = torch.zeros(4)
    # x + 1 + 2 + 3, and the count behind the loop
    assert torch.equal(replayed(step, torch.ones(4), count, X)[0], X + 6 + 3)
    assert count.tolist() == [3, 3, 3, 3]
    graph = lower_traced(step).graph
    (loop,) = [op for op in graph.ops if op.kind == "repeat"]
    assert len(loop.outputs) == 2
    assert graph.root(loop.outputs[1]) == "count"


def test_a_loop_that_only_counts_is_kept() -> None:
    def program(module: Any, x: Tensor) -> Tensor:
        def body(values: list[Tensor]) -> list[Tensor]:
            module.count.add_(1)
            return values

        repeat(module, 3, body, x)
        return x + 1

    nodes = traced(program).graph_module.graph.nodes
    assert any(isinstance(node.target, TracedLoop) for node in nodes)


def test_tensors_of_a_round_stay_inside() -> None:
    def program(module: Any, x: Tensor) -> Tensor:
        kept: list[Tensor] = []

        def body(values: list[Tensor]) -> list[Tensor]:
            kept.append(values[0] * 3)
            return [kept[0] + 1]

        return repeat(module, 3, body, x)[0] + kept[0]

    with pytest.raises(CaptureError, match="leaves a tensor outside"):
        traced(program)


def branch(module: Any, x: Tensor, then: Any, otherwise: Any) -> Tensor:
    condition = x.sum() > 0
    return module.trace.control.branch(condition, then, otherwise)[0]


def test_a_branch_is_one_op_over_two_functions() -> None:
    def program(module: Any, x: Tensor) -> Tensor:
        return branch(
            module, x, lambda: [(x * module.weight).exp()], lambda: [x - module.count]
        )

    graph = graph_of(program)
    (found,) = [op for op in graph.ops if op.kind == "branch"]
    # The condition, x, the weight that one side reads and the buffer of the other.
    assert found.inputs[1:] == ("input0", "weight", "count")
    then, otherwise = (graph.functions[str(n)] for n in ("then", "otherwise"))
    assert (kinds(then), kinds(otherwise)) == (["mul", "exp"], ["sub"])


def test_a_branch_in_a_loop_is_part_of_its_body() -> None:
    def program(module: Any, x: Tensor) -> Tensor:
        def body(values: list[Tensor]) -> list[Tensor]:
            (v,) = values
            return [branch(module, v, lambda: [v - 3], lambda: [v + 5])]

        return repeat(module, 2, body, x)[0]

    step = traced(program)
    # The sum is 6, then -6.
    assert torch.equal(replayed(step, X, X, X)[0], X - 3 + 5)
    functions = lower_traced(step).graph.functions
    assert "branch" in kinds(functions["loop"])


def test_what_leaves_a_side_keeps_both_in_the_graph() -> None:
    def program(module: Any, x: Tensor) -> Any:
        kept: list[Tensor] = []

        def then() -> list[Tensor]:
            kept.append(x * 7)
            return [kept[0] + 1]

        return branch(module, x, then, lambda: [x - 1]), kept[0]

    assert "select" in kinds(graph_of(program))
