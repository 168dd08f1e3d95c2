"""The machine's float16 arithmetic: rounding, partial sums, overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from popple.engine.torch import (
    Arithmetic,
    Numerics,
    ParameterGroup,
    UpdateRule,
    build_replay,
)
from popple.engine.torch.replay import below_autograd

STOCHASTIC = Numerics(stochastic_rounding=True)
PARTIALS = Numerics(half_partials=True)
NAN = Numerics(nan_on_overflow=True)


def run(function: Callable[..., Any], numerics: Numerics, *arguments: Tensor) -> Any:
    """The results of a function of float16 tensors, as the machine has them."""
    traced = make_fx(lambda *flat: [function(*flat)], tracing_mode="fake")(*arguments)
    step = build_replay(traced, arithmetic=Arithmetic(numerics))
    with torch.no_grad(), below_autograd():
        return step(arguments)[0]


@pytest.mark.parametrize("number", [1 + 2.0**-12, -1000.3, 2.0**-24 / 4, 3e-6, 0.1])
def test_rounding_at_random_keeps_the_mean(number: float) -> None:
    rounded = Arithmetic(STOCHASTIC).round(torch.full((40000,), number))
    below, above = sorted(set(rounded.tolist()))
    assert below < number < above
    # Two neighbours; the mean of n draws is off by their distance / sqrt(n), 5 sigma.
    distance = above - below
    assert rounded.double().mean().item() == pytest.approx(number, abs=distance / 40)
    assert distance <= max(2.0**-24, abs(number) * 2.0**-10)


@pytest.mark.parametrize(
    "number", [0.0, 1.0, -65504.0, 2.0**-24, float("inf"), float("nan")]
)
def test_numbers_that_float16_has_stay(number: float) -> None:
    x = torch.full((100,), number)
    rounded = Arithmetic(STOCHASTIC).round(x)
    torch.testing.assert_close(rounded.float(), x, rtol=0, atol=0, equal_nan=True)


def test_equal_seeds_round_equally() -> None:
    x = torch.randn(1000)
    first, again = (Arithmetic(STOCHASTIC).round(x) for _ in range(2))
    other = Arithmetic(Numerics(stochastic_rounding=True, seed=1)).round(x)
    assert first.equal(again)
    assert not first.equal(other)


def test_small_steps_add_up() -> None:
    def count(x: Tensor) -> Tensor:
        for _ in range(64):
            x = x + 2.0**-12
        return x

    # Each step is a quarter of what a float16 near 1 can hold. One rounding is off by
    # 4e-4, 64 by 3.4e-3, their mean over 1000 numbers by 1.1e-4: five times that.
    x = torch.ones(1000).half()
    assert count(x).max() == 1
    mean = run(count, STOCHASTIC, x).double().mean().item()
    assert mean == pytest.approx(1 + 64 * 2.0**-12, abs=5e-4)


def test_writing_in_place_rounds_in_place() -> None:
    def write(x: Tensor) -> Tensor:
        x.add_(2.0**-12)
        x[:500].mul_(1)
        return x.clone()

    x = torch.ones(1000).half()
    result = run(write, STOCHASTIC, x)
    assert set(x.tolist()) == {1, 1 + 2.0**-10}
    assert result.equal(x)


def test_overflow_gives_nan() -> None:
    x = torch.tensor([60000.0, 1.0, float("inf")]).half()
    result = run(lambda x: x * 2, NAN, x)
    assert result.dtype is torch.float16
    assert result.isnan().tolist() == [True, False, False]
    assert result[1:].tolist() == [2, float("inf")]


def test_float32_is_left_alone() -> None:
    x = torch.rand(8, 8)
    everything = Numerics(True, True, True)
    assert run(lambda x: torch.tanh(x @ x), everything, x).equal(torch.tanh(x @ x))


def test_partial_sums_lose_what_does_not_fit() -> None:
    # Sums of sixteen ones are multiples of the steps that float16 has up to 4096.
    ones = torch.ones(1, 4096).half()
    assert run(torch.mm, PARTIALS, ones, ones.t()).item() == 4096
    # Beyond 2048 a step is 2: adding 16 x 1/32 = 0.5 to 2048 gives 2048 again.
    long = torch.cat([torch.full((1, 2048), 1.0), torch.full((1, 2048), 1 / 32)], 1)
    ones = torch.ones(4096, 1).half()
    assert run(torch.mm, PARTIALS, long.half(), ones).item() == 2048
    assert run(torch.mm, Numerics(nan_on_overflow=True), long.half(), ones) == 2112


CONVOLUTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "plain": lambda x, k: F.conv2d(x, k, padding=1),
    "grouped": lambda x, k: F.conv2d(x, k[:, :20], groups=2),
    "transposed": lambda x, k: F.conv_transpose2d(x, k, stride=2),
    "grouped transposed": lambda x, k: F.conv_transpose2d(x, k, groups=4),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_cut_convolutions_and_their_gradients_are_nearly_the_same(name: str) -> None:
    function = CONVOLUTIONS[name]
    x, kernel = torch.randn(2, 40, 5, 5).half(), torch.randn(40, 40, 3, 3).half()

    def with_gradients(x: Tensor, kernel: Tensor) -> Tensor:
        x, kernel = x.requires_grad_(), kernel.requires_grad_()
        result = function(x, kernel)
        found = torch.autograd.grad(result, (x, kernel), torch.ones_like(result))
        return torch.cat([t.flatten() for t in (result.detach(), *found)])

    expected = with_gradients(x.float(), kernel.float())
    result = run(with_gradients, PARTIALS, x, kernel).float()
    assert not result.equal(expected.half().float())
    torch.testing.assert_close(result, expected, rtol=2e-2, atol=0.5)


def test_updates_of_float16_weights_add_up() -> None:
    settings = {"momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": 0}
    group = ParameterGroup(("w",), {"lr": 2.0**-12, **settings})
    rule = UpdateRule("sgd", (group,))
    weights = {"w": torch.ones(1000).half()}
    arithmetic = Arithmetic(STOCHASTIC)
    for _ in range(64):
        gradients = {"w": torch.ones(1000).half()}
        arithmetic.update(rule, weights, gradients, {})
    mean = weights["w"].double().mean().item()
    assert mean == pytest.approx(1 - 64 * 2.0**-12, abs=5e-4)
