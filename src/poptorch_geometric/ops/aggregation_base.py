"""Aggregation that takes the order of its index on trust."""

from __future__ import annotations

import torch_geometric
from torch import Tensor

__all__ = ["Aggregation"]


class Aggregation(torch_geometric.nn.aggr.Aggregation):
    """An aggregation whose index is not looked at: it has no values while tracing."""

    def assert_sorted_index(self, index: Tensor | None) -> None:
        """Nothing: whether values are sorted cannot be known."""
