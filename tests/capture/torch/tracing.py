"""Traces and lowers functions and modules for the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from popple.capture.torch import (
    ActiveTrace,
    LoweredStep,
    LowerRequest,
    PlainForward,
    TracedStep,
    TraceRequest,
    lower_step,
    trace_step,
)
from popple.graph import Graph, Op, verify


class Function(nn.Module):
    """A module around a function of tensors."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: Any) -> Any:
        return self._function(*args)


class Announced(PlainForward):
    """A forward whose trace is told to a listener."""

    def __init__(self, listener: Callable[[ActiveTrace], Any]) -> None:
        self._listener = listener

    @contextmanager
    def announcing(self, trace: ActiveTrace) -> Iterator[None]:
        self._listener(trace)
        yield


def trace(
    module: nn.Module | Callable[..., Any],
    *inputs: Tensor,
    train: bool = False,
    listener: Callable[[ActiveTrace], Any] = lambda trace: None,
) -> TracedStep:
    """The traced step of a module (or function) on these inputs."""
    if not isinstance(module, nn.Module):
        module = Function(module)
    parameters = dict(module.named_parameters())
    return trace_step(
        TraceRequest(
            module=module,
            parameters=parameters,
            buffers=dict(module.named_buffers()),
            inputs=inputs,
            trainable=tuple(parameters) if train else None,
            forward=Announced(listener),
        )
    )


def lower_traced(step: TracedStep) -> LoweredStep:
    """The lowered step; its graph is valid."""
    names = [f"input{index}" for index in range(step.num_inputs)]
    lowered = lower_step(LowerRequest("test", step, names))
    verify(lowered.graph)
    return lowered


def lower(
    module: nn.Module | Callable[..., Any], *inputs: Tensor, train: bool = False
) -> Graph:
    """The graph of a module (or function) on these inputs."""
    return lower_traced(trace(module, *inputs, train=train)).graph


def kinds(graph: Graph) -> list[str]:
    """Kinds of all ops, in order."""
    return [op.kind for op in graph.ops]


def of_kind(graph: Graph, kind: str) -> list[Op]:
    """All ops of one kind."""
    return [op for op in graph.ops if op.kind == kind]


def operators(step: TracedStep) -> list[str]:
    """Names of the traced operators, without overload: `aten.add`."""
    nodes = step.graph_module.graph.nodes
    names = [str(node.target) for node in nodes if node.op == "call_function"]
    return [".".join(name.split(".")[:2]) for name in names]


def replayed(step: TracedStep, *arguments: Tensor) -> Sequence[Any]:
    """What the traced graph computes."""
    with torch.no_grad():
        return step.graph_module(*arguments)
