"""Products of float16 in float32: what is exact, what is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from popple.capture.torch.recurrent import gru_layer, lstm_layer
from popple.engine.torch import build_replay, half_products
from popple.engine.torch.replay import Replay, below_autograd

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def _slow_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half_products, "is_half_slow", lambda: True)


def replay_of(function: Callable[..., Any], *given: Tensor, weights: int = 0) -> Replay:
    traced = make_fx(lambda *flat: [function(*flat)], tracing_mode="fake")(*given)
    return build_replay(traced, num_weights=weights)


def run(function: Callable[..., Any], *arguments: Tensor) -> Any:
    step = replay_of(function, *arguments)
    with torch.enable_grad(), below_autograd():
        return step(arguments)[0]


def rounded(function: Callable[..., Any], *arguments: Tensor) -> Any:
    """What float32 computes of the same numbers, rounded once."""
    return function(*(t.float() for t in arguments)).half()


def halves(*shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).half() for shape in shapes]


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "product": (torch.mm, ((30, 40), (40, 20))),
    "transposed": (lambda a, b: a.t() @ b.t(), ((40, 30), (20, 40))),
    "linear": (F.linear, ((5, 30, 40), (20, 40), (20,))),
    "batched": (torch.bmm, ((3, 10, 20), (3, 20, 10))),
    "vectors": (torch.dot, ((100,), (100,))),
    "convolution": (
        lambda x, k: F.conv2d(x, k, padding=1),
        ((2, 4, 9, 9), (6, 4, 3, 3)),
    ),
    "transposed convolution": (F.conv_transpose1d, ((2, 4, 9), (4, 6, 3))),
    "attention": (F.scaled_dot_product_attention, ((2, 4, 16, 8),) * 3),
    "parts": (
        lambda x: F.scaled_dot_product_attention(*x.unbind(0)),
        ((3, 2, 4, 16, 8),),
    ),
    "LSTM": (
        lambda x, h, c, wx, wh: lstm_layer(x, [h, c], [wx, wh])[0],
        ((7, 3, 5), (3, 4), (3, 4), (16, 5), (16, 4)),
    ),
    "GRU": (
        lambda x, h, wx, wh: gru_layer(x, [h], [wx, wh])[0],
        ((7, 3, 5), (3, 4), (12, 5), (12, 4)),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_products_are_those_of_float32_rounded_once(name: str) -> None:
    function, shapes = FUNCTIONS[name]
    arguments = halves(*shapes)
    result = run(function, *arguments)
    assert result.dtype is torch.float16
    assert result.equal(rounded(function, *arguments))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_so_are_their_gradients(name: str) -> None:
    function, shapes = FUNCTIONS[name]

    def gradients(*given: Tensor) -> Tensor:
        leaves = [each.detach().requires_grad_() for each in given]
        result = function(*leaves)
        # Of the sum, since halves of a weighted one would be rounded on the way.
        found = torch.autograd.grad(result, leaves, torch.ones_like(result))
        return torch.cat([each.flatten() for each in found])

    arguments = halves(*shapes)
    result = run(gradients, *arguments)
    expected = rounded(gradients, *arguments)
    # The forward value that attention's gradient reads is a half; a step of that.
    tolerance = 2e-3 if name in ("attention", "parts") else 0
    torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance)


def test_what_lies_between_products_rounds_as_the_program_does() -> None:
    def layers(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return torch.relu(F.layer_norm(x @ a, (40,)) + 0.1) @ b

    x, a, b = halves((8, 20), (20, 40), (40, 10))
    between = torch.relu(F.layer_norm(rounded(torch.mm, x, a), (40,)) + 0.1)
    assert run(layers, x, a, b).equal(rounded(torch.mm, between, b))


def test_float32_and_integers_are_left_alone() -> None:
    x = torch.randn(4, 4)
    step = replay_of(lambda x, n: (x @ x) * (n @ n), x, torch.ones(4, 4).long())
    assert step.graph is not None
    assert aten._to_copy.default not in {n.target for n in step.graph.nodes}


def test_fast_half_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half_products, "is_half_slow", lambda: False)
    step = replay_of(torch.mm, *halves((4, 4), (4, 4)))
    assert step.graph is not None
    assert [n.target for n in step.graph.nodes][2:-1] == [aten.mm.default]


def test_what_is_overwritten_is_converted_again() -> None:
    def twice(x: Tensor) -> Tensor:
        first = x @ x
        x.add_(1)
        return first + x @ x

    (x,) = halves((6, 6))
    before, after = x.clone(), x + 1
    expected = rounded(torch.mm, before, before) + rounded(torch.mm, after, after)
    assert run(twice, x).equal(expected)
    assert x.equal(after)


def test_a_program_cast_is_not_taken_for_a_copy() -> None:
    def overwrite(w: Tensor) -> Tensor:
        wide = w.float()
        wide.add_(1)
        return wide

    (w,) = halves((3, 3))
    step = replay_of(overwrite, w, weights=1)
    with torch.no_grad(), below_autograd():
        first, again = (step([w])[0] for _ in range(2))
    assert first.equal(again)


def test_weights_are_converted_once_per_change() -> None:
    x, w = halves((2, 4), (4, 4))
    step = replay_of(lambda w, x: (x @ w) @ w, w, x, weights=1)
    assert step.copies.numbers == (0,)
    with torch.no_grad(), below_autograd():
        step([w, x])
        (held,) = step.copies.of([w])
        assert step.copies.of([w])[0] is held
        w.mul_(2)
        assert step([w, x])[0].equal(run(lambda w, x: (x @ w) @ w, w, x))
        assert held.equal(w.float())


def test_a_weight_that_lies_elsewhere_now_is_converted() -> None:
    w, x, other = halves((4, 4), (4, 4), (4, 4))
    step = replay_of(lambda w, x: x @ w, w, x, weights=1)
    with torch.no_grad(), below_autograd():
        step([w, x])
        version = w._version
        w.data = other
        assert w._version == version
        assert step([w, x])[0].equal(rounded(torch.mm, x, other))


def test_views_of_halves_that_nobody_reads_are_dropped() -> None:
    a, b = halves((40, 30), (20, 40))
    graph = replay_of(lambda a, b: a.t() @ b.t(), a, b).graph
    assert graph is not None
    views = [node for node in graph.nodes if node.target is aten.t.default]
    assert len(views) == 2
    assert all(node.args[0].target is aten._to_copy.default for node in views)


def test_another_weight_of_the_same_version_is_converted() -> None:
    (x,) = halves((4, 4))
    step = replay_of(lambda w, x: x @ w, x.clone(), x, weights=1)
    with torch.no_grad(), below_autograd():
        for factor in (1.0, 2.0):
            w = x * factor
            assert step([w, x])[0].equal(rounded(torch.mm, x, w))


def test_whether_half_is_slow_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    asked: list[torch.dtype] = []

    def seconds(dtype: torch.dtype) -> float:
        asked.append(dtype)
        return 10.0 if dtype is torch.float16 else 1.0

    monkeypatch.setattr(half_products, "_seconds", seconds)
    half_products.is_half_slow.cache_clear()
    assert half_products.is_half_slow()
    assert half_products.is_half_slow()
    half_products.is_half_slow.cache_clear()
    assert asked == [torch.float16, torch.float32]
