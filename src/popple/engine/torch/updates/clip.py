"""Clip gradients by their joint norm."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def clip_gradients(gradients: Sequence[Tensor], max_norm: float) -> list[Tensor]:
    """The gradients scaled so that their joint norm is at most `max_norm`.

    They are new tensors in float32: gradients may share memory or repeat elements.
    """
    if not gradients:
        return []
    wide = [gradient.float() for gradient in gradients]
    total = torch.linalg.vector_norm(torch.stack(list(torch._foreach_norm(wide))))
    # The small number and the order are those of `torch.nn.utils.clip_grad_norm_`.
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    return list(torch._foreach_mul(wide, factor))
