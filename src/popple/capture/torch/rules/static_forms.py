"""Static forms of torch functions that would look at values: cov, corrcoef, and others.

While a model is traced there are no values. These functions compute the same from
valid arguments; what torch's own check, they trust.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["STATIC_FORMS"]


def _covariance(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Rows are variables, columns observations, which may be weighted."""
    x = input if input.dim() == 2 else input.reshape(1, -1)
    weights = torch.ones_like(x[0])
    for factor in (fweights, aweights):
        weights = weights if factor is None else weights * factor
    total = weights.sum()
    mean = (x * weights).sum(1, keepdim=True) / total
    lost = correction if aweights is None else (weights * aweights).sum() / total
    if aweights is not None:
        lost = correction * lost
    deviation = x - mean
    product = (deviation * weights) @ deviation.t().conj()
    result = product / (total - lost).clamp(min=0)
    return result if input.dim() == 2 else result.squeeze()


def _correlation(input: Tensor) -> Tensor:
    covariance = _covariance(input)
    if covariance.dim() == 0:
        return covariance / covariance
    deviation = covariance.diagonal().sqrt()
    return (covariance / deviation[:, None] / deviation).clamp(-1, 1)


def _combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    choose = itertools.combinations
    if with_replacement:
        choose = itertools.combinations_with_replacement
    places = list(choose(range(len(input)), r))
    return input[torch.tensor(places, dtype=torch.int64).view(-1, r)]


def _gaussian_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Negative logarithm of a normal density; `var` is not below 0."""
    if not isinstance(var, Tensor):
        var = torch.full_like(input, var)
    if var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    with torch.no_grad():
        # The gradient is that of the variance itself, also where it is bounded.
        excess = var.clamp(min=eps) - var
    var = var + excess
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


STATIC_FORMS: dict[Any, Callable[..., Any]] = {
    torch.cov: _covariance,
    Tensor.cov: _covariance,
    torch.combinations: _combinations,
    torch.corrcoef: _correlation,
    Tensor.corrcoef: _correlation,
    F.gaussian_nll_loss: _gaussian_loss,
}
