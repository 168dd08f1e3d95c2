"""Aggregation that takes the order of its index on trust."""

from __future__ import annotations

from torch import Tensor
from torch_geometric import nn

__all__ = ["Aggregation"]


class Aggregation(nn.aggr.Aggregation):
    """An aggregation whose index is not looked at: it has no values while tracing."""

    def assert_sorted_index(self, index: Tensor | None) -> None:
        """Nothing: whether values are sorted cannot be known."""
