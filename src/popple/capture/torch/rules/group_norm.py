"""Group normalisation as the device does it when asked to stride over channels.

PyTorch's group g has channels next to each other. Asked to, the
device takes every G-th one, which is faster there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor


def _group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    # Channels are put in order, normalised by torch's kernel without scale and shift,
    # which belong to channels, and put back.
    size = input.shape[1] // num_groups
    gathered = _exchanged(input, size, num_groups)
    result = _exchanged(F.group_norm(gathered, num_groups, eps=eps), num_groups, size)
    for_channels = (-1, *(1 for _ in input.shape[2:]))
    if weight is not None:
        result = result * weight.reshape(for_channels)
    return result if bias is None else result + bias.reshape(for_channels)


def _exchanged(x: Tensor, rows: int, columns: int) -> Tensor:
    """The channels, in rows and columns, read column by column."""
    return x.unflatten(1, (rows, columns)).transpose(1, 2).flatten(1, 2)


STRIDED_FORMS: dict[Any, Callable[..., Any]] = {F.group_norm: _group_norm}
