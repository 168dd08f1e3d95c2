"""Custom ops that come with PopTorch itself, under their names and domain."""

from __future__ import annotations

import torch

from ._errors import Error
from ._ops_custom import registerCustomOp

__all__ = ["fast_gather_last_dim"]


@registerCustomOp("FastGatherLastDim", "poptorch.custom_ops")
def fast_gather_last_dim(data: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """`torch.gather` along the last of three dimensions."""
    if data.dim() != 3 or index.dim() != 3 or data.shape[:2] != index.shape[:2]:
        raise Error(
            "FastGatherLastDim takes data and indices of three dimensions that differ "
            f"in the last at most, not {list(data.shape)} and {list(index.shape)}."
        )
    return torch.gather(data, -1, index)
