"""Weights follow their input's type; running statistics keep their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import options

LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(4, 3), (2, 4)),
    "vector": (lambda: nn.Linear(4, 3), (4,)),
    "conv": (lambda: nn.Conv2d(4, 3, 2), (1, 4, 5, 5)),
    "conv transpose": (lambda: nn.ConvTranspose1d(4, 3, 2), (1, 4, 5)),
    "layer norm": (lambda: nn.LayerNorm(4), (2, 4)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (2, 4)),
    "batch norm": (lambda: nn.BatchNorm1d(4), (3, 4)),
    "prelu": (lambda: nn.PReLU(), (2, 4)),
    "attention": (lambda: _SelfAttention(), (3, 4)),
    "lstm cell": (lambda: _Cell(), (2, 4)),
}


class _SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


class _Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.cell(x)[0]


def run(module: nn.Module, *inputs: Tensor) -> Any:
    return poptorch.inferenceModel(module, options())(*inputs)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("weights", [torch.float16, torch.float32])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_the_result_has_the_type_of_the_input(
    name: str, weights: torch.dtype, dtype: torch.dtype
) -> None:
    make, shape = LAYERS[name]
    module = make().to(weights).eval()
    x = torch.randn(shape).to(dtype)
    expected = module.float()(x.float()).detach()
    result = run(module.to(weights), x)
    assert result.dtype is dtype
    torch.testing.assert_close(result.float(), expected, rtol=1e-2, atol=1e-2)


def test_gradients_come_back_in_the_type_of_the_weights() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            y = self.linear(x)
            return y, F.mse_loss(y, torch.ones_like(y))

    module = Model()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    model = poptorch.trainingModel(module, options(), optimizer)
    x = torch.randn(8, 4).half()
    first, last = (model(x)[1], [model(x)[1] for _ in range(50)][-1])
    assert first.dtype is torch.float16
    assert last < 0.2 * first
    assert module.linear.weight.dtype is torch.float32


def test_products_take_the_type_of_the_first_factor() -> None:
    class Product(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
            return x @ y, y @ x, torch.addmm(y, x, y), torch.einsum("ij,jk->ik", x, y)

    x, y = torch.ones(2, 2).half(), torch.ones(2, 2)
    types = [result.dtype for result in run(Product(), x, y)]
    half, single = torch.float16, torch.float32
    assert types == [half, single, half, half]


class Normalised(nn.Module):
    """Batch norm in training mode; gives the mean it holds as well."""

    def __init__(self, statistics: torch.dtype) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.norm.half()
        self.norm.running_mean = torch.zeros(3, dtype=statistics)
        self.norm.running_var = torch.ones(3, dtype=statistics)

    def forward(self, x: Tensor) -> tuple[Tensor, Any]:
        return self.norm(x), self.norm.running_mean


@pytest.mark.parametrize("statistics", [torch.float16, torch.float32])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_running_statistics_keep_their_type(
    statistics: torch.dtype, dtype: torch.dtype
) -> None:
    module = Normalised(statistics)
    model = poptorch.inferenceModel(module, options())
    y, _ = model(torch.tensor([[0.0] * 3, [2.0] * 3]).to(dtype))
    model.copyWeightsToHost()
    mean = module.norm.running_mean
    assert mean is not None
    # The batch's mean is 1: 0.9 * 0 + 0.1 * 1.
    assert (y.dtype, mean.dtype) == (dtype, statistics)
    torch.testing.assert_close(mean.float(), torch.full((3,), 0.1), rtol=1e-3, atol=0)


def test_statistics_read_in_forward_are_those_before_the_step() -> None:
    _, mean = run(Normalised(torch.float32), torch.ones(2, 3).half())
    assert mean.tolist() == [0.0, 0.0, 0.0]
