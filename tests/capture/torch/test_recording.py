"""Operators recorded directly make the nodes that the tracer makes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.fx import Node

from popple.capture.torch import TracedStep, tags
from tests.capture.torch.tracing import trace


class Mixed(nn.Module):
    """Several results, writes in place, constants, an operator made of others."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 6)
        self.norm = nn.LayerNorm(6)

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.norm(self.layer(x)).chunk(2, dim=1)
        scaled = first.clone().mul_(torch.tensor(2.0)) + torch.arange(3)
        scaled[0] = second.max(dim=0).values
        return F.mse_loss(scaled, second)


def described(step: TracedStep) -> list[tuple[Any, ...]]:
    return [
        (node.name, str(node.target), str(node.args), str(node.kwargs), sizes(node))
        for node in step.graph_module.graph.nodes
    ]


def sizes(node: Node) -> Any:
    value = node.meta.get("val")
    if isinstance(value, Tensor):
        return value.shape, value.stride(), value.dtype, value.storage_offset()
    return None if value is None else [each.shape for each in value]


def test_both_ways_give_the_same_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = Mixed(), torch.ones(2, 4)
    recorded = described(trace(module, x, train=True))
    monkeypatch.setattr(tags, "record", lambda *_: None)
    assert recorded == described(trace(module, x, train=True))


def test_shares_of_a_trace_rise() -> None:
    shares: list[float] = []
    pace = tags._Pace(2, shares.append)
    pace.enter_module()  # 1 of 3 modules, the root included: a third of a third
    pace.num_forward = 100
    for _ in range(200):
        pace.run_backward()
    # After 100 of 200 operators, then at the end, of which nobody can be sure.
    assert shares == pytest.approx([1 / 9, 2 / 3, 1 / 3 + 0.66])
