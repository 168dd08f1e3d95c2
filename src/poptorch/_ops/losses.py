"""`identity_loss`: any tensor as the loss that training minimises."""

from __future__ import annotations

import torch

from .._errors import Error, check
from .._tracing.trace import mark_loss

__all__ = ["identity_loss"]


def identity_loss(x: torch.Tensor, reduction: str) -> torch.Tensor:
    """Mark `x`, reduced by "sum", "mean" or "none", as the loss; returns it."""
    if not isinstance(x, torch.Tensor):
        raise Error(f"identity_loss takes a tensor, not {type(x).__name__}.")
    check(
        reduction in ("sum", "mean", "none"),
        f"Unsupported reduction type {reduction!r}: use 'sum', 'mean' or 'none'.",
    )
    if reduction == "sum":
        loss = x.sum()
    elif reduction == "mean":
        loss = x.mean()
    else:
        loss = x.clone()
    mark_loss(loss)
    return loss
