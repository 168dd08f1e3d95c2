"""Small graphs whose every number is known."""

from __future__ import annotations

import torch
from torch_geometric.data import Data, HeteroData

AB = ("a", "to", "b")


def ring(num_nodes: int, value: float = 1.0) -> Data:
    """Nodes in a ring, each with an edge to the next; a label for the graph."""
    nodes = torch.arange(num_nodes)
    return Data(
        x=torch.full((num_nodes, 2), value),
        edge_index=torch.stack([nodes, (nodes + 1) % num_nodes]),
        edge_attr=torch.full((num_nodes, 1), value),
        y=torch.tensor([value]),
    )


def pairs(num_a: int, num_b: int, num_edges: int) -> HeteroData:
    """Nodes of types a and b, and edges from a to b."""
    data = HeteroData()
    data["a"].x = torch.ones(num_a, 2)
    data["b"].x = torch.ones(num_b, 3)
    data[AB].edge_index = torch.stack(
        [torch.arange(num_edges) % num_a, torch.arange(num_edges) % num_b]
    )
    data.y = torch.ones(1)
    return data
