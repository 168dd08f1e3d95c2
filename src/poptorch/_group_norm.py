"""Group normalisation as the device does it when asked to stride over channels.

PyTorch's group g has channels next to each other. With the backend's option
`groupNormStridedChannelGrouping`, which is faster there, it has every G-th one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["STRIDED_GROUPS", "StridedGroups"]

STRIDED_GROUPS = "groupNormStridedChannelGrouping"
"""The backend's name of the option."""


class StridedGroups(TorchFunctionMode):
    """While it is active, the groups of `group_norm` stride over the channels."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one function of torch, or our form of it."""
        form = _group_norm if func is F.group_norm else func
        return form(*args, **(kwargs or {}))


def _group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
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
