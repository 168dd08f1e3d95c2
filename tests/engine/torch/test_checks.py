"""Floating-point exceptions stop where they arise."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from popple.engine.torch.checks import FloatingPointChecks
from popple.errors import ArithmeticTrap

ONE = torch.ones(2)
ZERO = torch.zeros(2)
INFINITE = torch.full((2,), float("inf"))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda: ONE / ZERO, "aten.div.Tensor made an infinite number"),
        (lambda: ZERO / ZERO, "aten.div.Tensor made a NaN"),
        (
            lambda: (1e4 * ONE).half() * (1e4 * ONE).half(),
            "aten.mul.Tensor made an inf",
        ),
        (lambda: (-ONE).sqrt(), "aten.sqrt.default made a NaN"),
        (lambda: ZERO.log(), "aten.log.default made an infinite number"),
        (lambda: (1e-30 * ONE) ** -2, "aten.pow.Tensor_Scalar made an infinite"),
        (lambda: ZERO * INFINITE, "aten.mul.Tensor made a NaN"),
        (lambda: INFINITE - INFINITE, "aten.sub.Tensor made a NaN"),
    ],
)
def test_an_exception_names_the_operator(
    function: Callable[[], Tensor], name: str
) -> None:
    with FloatingPointChecks(), pytest.raises(ArithmeticTrap, match=name):
        function()


@pytest.mark.parametrize(
    "function",
    [
        lambda: INFINITE + 1,
        lambda: torch.full((2,), float("nan")) + 1,
        lambda: ONE.masked_fill(ONE > 0, float("-inf")),
        lambda: torch.full((2,), float("inf")),
        lambda: torch.empty(1000),
        lambda: (ONE * 3e38).double() * 10,
        lambda: torch.tensor([1, 0]) // 1,
    ],
    ids=["inf", "nan", "mask", "constant", "empty", "double", "integers"],
)
def test_what_is_only_passed_on_is_no_exception(function: Callable[[], Tensor]) -> None:
    with FloatingPointChecks():
        function()


def test_a_negative_power_of_zero_is_no_division() -> None:
    with FloatingPointChecks():
        assert (ZERO**-0.5).isinf().all()
        assert ZERO.clone().pow_(-0.5).isinf().all()


def test_outside_nothing_is_checked() -> None:
    assert (ONE / ZERO).isinf().all()


@pytest.mark.parametrize("operator", [torch.lt, torch.le, torch.gt, torch.ge])
def test_a_nan_cannot_be_put_in_order(operator: Callable[..., Tensor]) -> None:
    with FloatingPointChecks():
        assert operator(ONE, INFINITE).dtype is torch.bool
        with pytest.raises(ArithmeticTrap, match="compared a NaN"):
            operator(ONE, ZERO + float("nan"))


def test_a_nan_can_be_told_from_others() -> None:
    with FloatingPointChecks():
        assert not torch.eq(ZERO + float("nan"), 1.0).any()
