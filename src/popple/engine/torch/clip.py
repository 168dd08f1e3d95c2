"""Bounding the norm of all gradients together."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def clip_gradients(gradients: Sequence[Tensor], max_norm: float) -> None:
    """Scale gradients in place so that their joint norm is at most `max_norm`."""
    norms = torch._foreach_norm(list(gradients))
    total = torch.linalg.vector_norm(torch.stack([n.float() for n in norms]))
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(list(gradients), factor)
