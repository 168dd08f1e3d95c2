"""MFConv with a weight for each degree applied to all nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric import nn
from torch_geometric.utils import degree

__all__ = ["MFConv"]

_original_forward = nn.MFConv.forward


class MFConv(nn.MFConv):
    """Every node takes its result from the weights of its degree.

    The original picks the nodes of each degree, and how many there are depends on the
    edges.
    """

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        """The features after one step of message passing."""
        if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
            return _original_forward(self, x, edge_index, size)
        source, target = (x, x) if isinstance(x, Tensor) else x
        num_nodes = source.size(self.node_dim) if size is None else size[1]
        if target is not None:
            num_nodes = target.size(self.node_dim)
        index = edge_index[1 if self.flow == "source_to_target" else 0]
        degrees = degree(index, num_nodes, dtype=torch.long).clamp(max=self.max_degree)
        h = self.propagate(edge_index, x=(source, target), size=size)
        out = h.new_zeros(*h.shape[:-1], self.out_channels)
        layers = zip(self.lins_l, self.lins_r, strict=True)
        for number, (left, right) in enumerate(layers):
            result = left(h) if target is None else left(h) + right(target)
            out = torch.where((degrees == number).view(-1, 1), result, out)
        return out
