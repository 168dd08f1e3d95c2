"""A linear layer with weights of its own for every type of row."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric import nn

__all__ = ["HeteroLinear"]


class HeteroLinear(nn.HeteroLinear):
    """The layer for every type of all rows, of which each row takes its own.

    The original sorts rows by type, and sizes depend on how many there are of each.
    """

    def forward(self, x: Tensor, type_vec: Tensor) -> Tensor:
        """Each row of `x` times the weights of its type."""
        products = torch.einsum("ni,tio->nto", x, self.weight)
        index = type_vec.long().view(-1, 1, 1).expand(-1, 1, self.out_channels)
        out = products.gather(1, index).squeeze(1)
        return out if self.bias is None else out + self.bias[type_vec]
