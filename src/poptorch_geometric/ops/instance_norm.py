"""InstanceNorm that writes into its running statistics."""

from __future__ import annotations

from torch import Tensor
from torch_geometric import nn

__all__ = ["InstanceNorm"]

_original_forward = nn.InstanceNorm.forward


class InstanceNorm(nn.InstanceNorm):
    """The norm, with running statistics that stay the same tensors.

    The original puts new tensors in their place, which a compiled model would lose.
    """

    def forward(
        self, x: Tensor, batch: Tensor | None = None, batch_size: int | None = None
    ) -> Tensor:
        """`x`, normalised over the nodes of each example."""
        if batch is not None and batch_size is None:
            raise ValueError(
                "InstanceNorm in a model needs batch_size: how many examples there are "
                "would depend on the values of `batch`."
            )
        buffers = {
            name: getattr(self, name) for name in ("running_mean", "running_var")
        }
        out = _original_forward(self, x, batch, batch_size)
        for name, buffer in buffers.items():
            if buffer is not None and getattr(self, name) is not buffer:
                buffer.copy_(getattr(self, name))
                setattr(self, name, buffer)
        return out
