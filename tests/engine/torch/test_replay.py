"""Replay: the traced step gives what eager PyTorch gives, and owns what it gives."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from popple.engine.torch import Replay, build_replay
from popple.engine.torch.replay import below_autograd
from popple.errors import ArithmeticTrap

CONSTANT = torch.zeros(3)


def traced(function: Callable[..., Any], *arguments: Tensor) -> GraphModule:
    """The function as a graph that returns a list."""
    return make_fx(
        lambda *flat: list(function(*flat)),
        tracing_mode="fake",
        _allow_non_fake_inputs=True,
    )(*arguments)


def replay(function: Callable[..., Any], *arguments: Tensor) -> Replay:
    return build_replay(traced(function, *arguments))


def run(step: Replay, *arguments: Tensor) -> list[Any]:
    with torch.no_grad(), below_autograd():
        return step(arguments)


class Cnn(nn.Module):
    """Convolution, batch norm and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.out = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(F.relu(self.norm(self.conv(x))).mean((2, 3)))


def step_of(module: nn.Module) -> Callable[..., list[Tensor]]:
    """Output, loss and gradients of a module whose parameters come as arguments."""
    names = [n for n, _ in (*module.named_parameters(), *module.named_buffers())]
    num_parameters = len(list(module.parameters()))

    def step(x: Tensor, *flat: Tensor) -> list[Tensor]:
        state = dict(zip(names, flat, strict=True))
        weights = [w.requires_grad_() for w in flat[:num_parameters]]
        out = torch.func.functional_call(module, state, (x,))
        loss = out.square().mean()
        return [out.detach(), loss.detach(), *torch.autograd.grad(loss, weights)]

    return step


@pytest.mark.parametrize(
    ("module", "x"),
    [
        (Cnn(), torch.rand(4, 1, 6, 6)),
        (
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
            torch.rand(2, 5, 8),
        ),
    ],
    ids=["cnn", "transformer"],
)
def test_forward_and_gradients_are_those_of_eager_torch(
    module: nn.Module, x: Tensor
) -> None:
    eager = copy.deepcopy(module)
    given = [t.detach().clone() for t in (*module.parameters(), *module.buffers())]
    results = run(replay(step_of(module), x, *given), x, *given)
    out = eager(x)
    out.square().mean().backward()
    assert torch.equal(results[0], out)
    for mine, parameter in zip(results[2:], eager.parameters(), strict=True):
        assert parameter.grad is not None
        torch.testing.assert_close(mine, parameter.grad, rtol=1e-6, atol=1e-7)
    # Running statistics were written to the arguments, as eager wrote to its buffers.
    written = given[len(list(module.parameters())) :]
    for mine, theirs in zip(written, eager.buffers(), strict=True):
        assert torch.equal(mine, theirs)


def test_the_traced_graph_is_left_as_it_is() -> None:
    graph_module = traced(lambda x: [x.detach() * 2], torch.ones(3))
    before = str(graph_module.graph)
    build_replay(graph_module)
    assert str(graph_module.graph) == before


@pytest.mark.parametrize(
    ("function", "shared"),
    [
        (lambda x, w: [x], {0}),
        (lambda x, w: [w.view(3, 1), x * 2], {0}),
        (lambda x, w: [x.detach()], {0}),
        (lambda x, w: [y := x * 2, y], {1}),
        (lambda x, w: [y := x * 2, y[1:]], {1}),
        (lambda x, w: [CONSTANT], {0}),
        (lambda x, w: [w.add_(x)], {0}),
        (lambda x, w: [x + 1, x * 2], set()),
    ],
    ids=["input", "view", "detached", "twice", "part", "constant", "in place", "own"],
)
def test_outputs_that_share_memory_are_copied(
    function: Callable[..., Any], shared: set[int]
) -> None:
    x, w = torch.ones(3), torch.ones(3)
    step = replay(function, x.clone(), w.clone())
    assert step.shared_outputs == shared
    results = run(step, x, w)
    owners = {id(t.untyped_storage()._cdata) for t in (x, w, CONSTANT)}
    pointers = [t.data_ptr() for t in results]
    assert len(set(pointers)) == len(pointers)
    assert not owners & {id(t.untyped_storage()._cdata) for t in results}
    for tensor in results:
        assert tensor.data_ptr() not in (
            x.data_ptr(),
            w.data_ptr(),
            CONSTANT.data_ptr(),
        )


def test_dead_code_is_not_run_but_writes_are() -> None:
    def function(x: Tensor, total: Tensor) -> list[Tensor]:
        x.exp()
        total.add_(1)
        return [x * 2]

    graph_module = traced(function, torch.ones(3), torch.zeros(3))
    total = torch.zeros(3)
    run(build_replay(graph_module), torch.ones(3), total)
    assert total.tolist() == [1, 1, 1]
    assert "exp" not in (build_replay(graph_module).function.__doc__ or "")


def test_running_statistics_move_even_if_the_result_is_not_read() -> None:
    layer = nn.BatchNorm1d(3)

    def function(x: Tensor, mean: Tensor, variance: Tensor) -> list[Tensor]:
        F.batch_norm(x, mean, variance, layer.weight, layer.bias, training=True)
        return [x * 2]

    x, mean = torch.rand(4, 3) + 1, torch.zeros(3)
    run(replay(function, x, mean.clone(), torch.ones(3)), x, mean, torch.ones(3))
    assert (mean > 0).all()


def test_unread_random_numbers_are_drawn_so_that_seeds_mean_the_same() -> None:
    def function(x: Tensor) -> list[Tensor]:
        torch.rand(5)
        return [x + torch.rand(3)]

    step = replay(function, torch.zeros(3))
    torch.manual_seed(7)
    (mine,) = run(step, torch.zeros(3))
    torch.manual_seed(7)
    assert torch.equal(mine, function(torch.zeros(3))[0])


def test_a_constant_that_is_written_to_stays_when_kept() -> None:
    graph_module = traced(lambda x: [CONSTANT.add_(x) * 1, CONSTANT * 1], torch.ones(3))
    kept = graph_module.graph.find_nodes(op="get_attr")
    step = build_replay(graph_module, kept)
    for _ in range(2):
        first, second = run(step, torch.ones(3))
        assert first.tolist() == second.tolist() == [1, 1, 1]
    assert CONSTANT.tolist() == [0, 0, 0]


def test_an_argument_that_is_written_to_stays_when_kept() -> None:
    def function(x: Tensor, count: Tensor) -> list[Tensor]:
        count.add_(1)
        return [x * count]

    graph_module = traced(function, torch.ones(2), torch.zeros((), dtype=torch.int64))
    kept = graph_module.graph.find_nodes(op="placeholder")[1:]
    count = torch.zeros((), dtype=torch.int64)
    for _ in range(2):
        (result,) = run(build_replay(graph_module, kept), torch.ones(2), count)
        assert result.tolist() == [1, 1]
    assert count.item() == 0


def test_checks_stop_at_the_operator() -> None:
    step = replay(lambda x: [x.log()], torch.ones(3)).with_checks()
    assert run(step, torch.ones(3))[0].tolist() == [0, 0, 0]
    with pytest.raises(ArithmeticTrap, match=r"aten\.log\.default"):
        run(step, torch.zeros(3))
