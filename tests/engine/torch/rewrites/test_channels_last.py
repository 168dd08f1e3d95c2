"""Convolutions with channels innermost: where they are turned, and what stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.experimental.proxy_tensor import make_fx

from popple.engine.torch.rewrites.channels_last import (
    gains_by_channels_last,
    lay_channels_last,
)

aten = torch.ops.aten
LAST = torch.channels_last


def traced(function: Callable[..., Any], *inputs: Tensor) -> GraphModule:
    return make_fx(function, tracing_mode="fake")(*inputs)


def step(x: Tensor, first: Tensor, second: Tensor, matrix: Tensor) -> list[Tensor]:
    """Two convolutions, a view, a loss; the images and the weights' gradients."""
    weights = [w.detach().requires_grad_() for w in (first, second, matrix)]
    images = torch.tanh(F.conv2d(x, weights[0], padding=1))
    features = F.conv2d(images, weights[1], stride=2)
    loss = (features.reshape(len(x), -1) @ weights[2]).square().sum()
    return [images, *torch.autograd.grad(loss, weights)]


def example() -> list[Tensor]:
    torch.manual_seed(0)
    shapes = [(2, 3, 9, 9), (72, 3, 3, 3), (8, 72, 3, 3), (8 * 4 * 4, 5)]
    return [torch.randn(shape) for shape in shapes]


class Layouts(Interpreter):
    """Runs a graph and notes whether what convolutions read has channels innermost."""

    def run_node(self, n: Node) -> Any:
        self.found: list[bool] = getattr(self, "found", [])
        if "convolution" in str(n.target):
            read: list[Any] = [self.env[a] for a in n.args[:3] if isinstance(a, Node)]
            self.found += [
                x.is_contiguous(memory_format=LAST) for x in read if x.dim() == 4
            ]
        return super().run_node(n)


def test_what_convolutions_read_has_channels_innermost_forward_and_backward() -> None:
    inputs = example()
    before, turned = traced(step, *inputs), lay_channels_last(traced(step, *inputs))
    plain, layouts = Layouts(before), Layouts(turned)
    expected, found = plain.run(*inputs), layouts.run(*inputs)
    # Two operands of each convolution, three of each backward of one.
    assert plain.found == [False] * 10
    assert layouts.found == [True] * 10
    for mine, theirs in zip(found, expected, strict=True):
        near = 1e-5 * float(theirs.abs().max())
        torch.testing.assert_close(mine, theirs, rtol=0, atol=near)
        assert mine.stride() == theirs.stride()


def test_activations_are_turned_once_at_the_front_door() -> None:
    turned = lay_channels_last(traced(step, *example()))
    nodes = turned.graph.find_nodes(op="call_function", target=aten.clone.default)
    sources = [node.args[0] for node in nodes if node.kwargs["memory_format"] is LAST]
    # The images, both weights and the gradient behind the view; nothing between.
    shapes = [list(source.meta["val"].shape) for source in sources]
    assert shapes == [[2, 3, 9, 9], [72, 3, 3, 3], [8, 72, 3, 3], [2, 8, 4, 4]]


def test_views_that_channels_forbid_become_copies() -> None:
    turned = lay_channels_last(traced(step, *example()))
    found = {str(node.target) for node in turned.graph.nodes}
    assert "aten.reshape.default" in found


@torch.library.custom_op("popple_tests::reads_memory", mutates_args=())
def _reads_memory(x: Tensor) -> Tensor:
    return x.clone()


@_reads_memory.register_fake
def _reads_memory_fake(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def test_operators_of_others_read_what_they_were_traced_with() -> None:
    def function(x: Tensor, weight: Tensor) -> list[Tensor]:
        return [torch.ops.popple_tests.reads_memory(F.conv2d(x, weight))]

    x, weight = example()[:2]
    turned = lay_channels_last(traced(function, x, weight))
    (reader,) = (n for n in turned.graph.nodes if "reads_memory" in str(n.target))
    assert reader.args[0].kwargs["memory_format"] is torch.contiguous_format


def test_a_graph_that_names_strides_stays_as_it_is() -> None:
    def function(x: Tensor, weight: Tensor) -> list[Tensor]:
        return [F.conv2d(x, weight).as_strided([4], [1])]

    x, weight = example()[:2]
    module = traced(function, x, weight)
    assert lay_channels_last(module) is module


def gains(out_channels: int, in_channels: int, groups: int = 1) -> bool:
    x = torch.randn(1, in_channels * groups, 5, 5)
    weight = torch.randn(out_channels, in_channels, 3, 3)
    return gains_by_channels_last(
        traced(lambda x, w: [F.conv2d(x, w, groups=groups)], x, weight).graph
    )


def test_who_gains() -> None:
    assert gains(96, 3)
    assert gains(96, 1, groups=96)  # a channel each
    assert not gains(64, 64)
    assert not gains(96, 2, groups=48)


def test_steps_without_convolutions_of_images_do_not_gain() -> None:
    product = traced(lambda x: [x @ x], torch.ones(2, 2))
    assert not gains_by_channels_last(product.graph)
    x, weight = torch.ones(1, 80, 9), torch.ones(80, 80, 3)
    assert not gains_by_channels_last(
        traced(lambda x, w: [F.conv1d(x, w)], x, weight).graph
    )
