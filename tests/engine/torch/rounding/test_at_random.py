"""Rounding at random: one kernel, one form in torch's operators, the same bits."""

from __future__ import annotations

import pytest
import torch

from popple.engine.torch.rounding import HalfRounding, at_random
from popple.engine.torch.rounding.kernel import find_kernel

INFINITY = float("inf")
EDGES = [0.0, -0.0, 65504.0, 65519.0, 65520.0, 1e9, INFINITY, -INFINITY, float("nan")]


def numbers(count: int = 1000) -> torch.Tensor:
    """Of all sizes, from far below the smallest float16 to beyond the largest."""
    generator = torch.Generator().manual_seed(0)
    sizes = 10.0 ** torch.randint(-10, 6, (count,), generator=generator)
    return torch.cat(
        [torch.randn(count, generator=generator) * sizes, torch.tensor(EDGES)]
    )


def bits(x: torch.Tensor) -> torch.Tensor:
    return x.view(torch.int16)


@pytest.mark.parametrize("gives_nan", [False, True])
def test_both_forms_give_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, gives_nan: bool
) -> None:
    if find_kernel() is None:
        pytest.skip("there is no compiler here")
    x = numbers()
    compiled = HalfRounding(3, gives_nan)(x)
    monkeypatch.setattr(at_random, "find_kernel", lambda: None)
    assert bits(HalfRounding(3, gives_nan)(x)).equal(bits(compiled))


def test_a_number_becomes_one_of_its_neighbours() -> None:
    x = numbers()
    x = x[x.abs() < 65504]
    step = torch.maximum(x.abs() * 2.0**-10, torch.tensor(2.0**-24))
    assert ((HalfRounding(0)(x).float() - x).abs() < step).logical_or(x == 0).all()


def test_what_is_too_large_is_infinite_or_no_number() -> None:
    x = torch.tensor([1e9, -1e9, INFINITY])
    assert HalfRounding(0)(x).tolist() == [INFINITY, -INFINITY, INFINITY]
    rounded = HalfRounding(0, gives_nan=True)(x)
    assert rounded.isnan().tolist() == [True, True, False]


def test_threads_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    x = numbers()
    alone = HalfRounding(5)(x)
    monkeypatch.setattr(at_random, "_SHARED_SIZE", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert bits(HalfRounding(5)(x)).equal(bits(alone))


@pytest.mark.parametrize("gap", [1, 2])
def test_the_layout_stays(gap: int) -> None:
    x = torch.randn(6, 8)[:, ::gap].t()
    rounded = HalfRounding(0)(x)
    assert rounded.stride() == torch.empty_like(x).stride()
    torch.testing.assert_close(rounded.float(), x, rtol=2.0**-10, atol=0)


def test_without_a_compiler_there_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    find_kernel.cache_clear()
    assert find_kernel() is None
    find_kernel.cache_clear()
