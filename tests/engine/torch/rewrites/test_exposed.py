"""Values inside a step, returned as they were computed."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from popple.capture.torch import (
    TracedStep,
    TraceRequest,
    find_loss,
    gradient_nodes,
    trace_step,
)
from popple.engine.torch.rewrites.exposed import expose


class Changes(nn.Module):
    """Overwrites what it has computed, and its input."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        product = x * self.w
        product.add_(1)
        if not torch.is_grad_enabled():
            x.zero_()
        return nn.functional.mse_loss(product, torch.zeros(2))


def trace(trainable: tuple[str, ...] | None) -> TracedStep:
    module = Changes()
    return trace_step(
        TraceRequest(
            module=module,
            parameters=dict(module.named_parameters()),
            buffers={},
            inputs=[torch.ones(2)],
            trainable=trainable,
        )
    )


def run(step: TracedStep, *arguments: Tensor) -> list[Tensor]:
    with torch.no_grad():
        return list(step.graph_module(*arguments))


def test_values_are_those_before_they_are_overwritten() -> None:
    step = trace(None)
    nodes = {node.name: node for node in step.graph_module.graph.nodes}
    shown = expose(step, [nodes["mul"], nodes["arg1_1"]])
    assert shown.num_outputs == 3
    x = torch.tensor([3.0, 4.0])
    _, product, given = run(shown, torch.tensor([2.0, 2.0]), x)
    assert product.tolist() == [6, 8]
    assert given.tolist() == [3, 4]
    assert x.tolist() == [0, 0]


def test_gradients_come_after_what_is_exposed() -> None:
    step = trace(("w",))
    shown = expose(step, [gradient_nodes(step)["w"]])
    results = run(shown, torch.ones(2), torch.ones(2))
    assert len(results) == 3
    assert torch.equal(results[1], results[2])


def test_the_step_itself_stays_as_it_was() -> None:
    step = trace(None)
    before = step.graph_module.code
    nodes = list(step.graph_module.graph.nodes)
    expose(step, [nodes[0]])
    assert step.graph_module.code == before
    assert expose(step, []) is step


def test_the_loss_is_where_the_backward_pass_begins() -> None:
    loss = find_loss(trace(("w",)))
    assert loss is not None
    assert "mse_loss" in str(loss.target)
    assert find_loss(trace(None)) is None
