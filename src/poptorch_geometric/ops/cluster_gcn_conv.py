"""ClusterGCNConv with loops that get weights instead of being removed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric import nn

__all__ = ["ClusterGCNConv"]

_original_forward = nn.ClusterGCNConv.forward


class ClusterGCNConv(nn.ClusterGCNConv):
    """The convolution with as many edges as it is given, and one loop per node.

    The original removes the loops it is given before it adds its own; here their
    weight is 0. That is the same for sums only: other aggregations stay as they are.
    """

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        """The features after one step of message passing."""
        is_dense = isinstance(edge_index, Tensor) and edge_index.layout == torch.strided
        if not is_dense or (self.add_self_loops and self.aggr not in ("add", "sum")):
            return _original_forward(self, x, edge_index)
        num_nodes = x.size(self.node_dim)
        row, col = edge_index[0], edge_index[1]
        is_loop = row == col
        counted = (~is_loop if self.add_self_loops else torch.ones_like(is_loop)).to(
            x.dtype
        )
        degree = x.new_zeros(num_nodes).index_add(0, col, counted)
        degree = degree + 1 if self.add_self_loops else degree
        inverse = 1.0 / degree.clamp(min=1.0)
        if self.add_self_loops:
            nodes = torch.arange(num_nodes, device=x.device).expand(2, -1)
            edge_index = torch.cat([edge_index, nodes.to(edge_index.dtype)], dim=1)
            loops = inverse * (1 + self.diag_lambda)
            weight = torch.cat([inverse[col] * counted, loops])
        else:
            extra = torch.where(is_loop, self.diag_lambda * inverse[row], 0.0)
            weight = inverse[col] + extra
        out = self.propagate(edge_index, x=x, edge_weight=weight)
        return self.lin_out(out) + self.lin_root(x)
