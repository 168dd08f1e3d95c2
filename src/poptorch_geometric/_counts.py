"""Numbers of nodes and edges per type; those of a plain graph have the type None."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch_geometric.data import Data, HeteroData

__all__ = [
    "Count",
    "Counts",
    "Graph",
    "edge_counts",
    "edge_ends",
    "node_counts",
    "total_counts",
]

Graph = Data | HeteroData

Count = int | dict[Any, int]
"""One number, for every type, or one for each."""

Counts = dict[Any, int]


def node_counts(data: Graph) -> Counts:
    """How many nodes of each type a graph has."""
    return {store._key: store.num_nodes or 0 for store in data.node_stores}


def edge_counts(data: Graph) -> Counts:
    """How many edges of each type a graph has."""
    return {store._key: store.num_edges for store in data.edge_stores}


def edge_ends(edge_type: Any) -> tuple[Any, Any]:
    """The types of the nodes that edges of a type lead from and to."""
    return (None, None) if edge_type is None else (edge_type[0], edge_type[2])


def total_counts(counts: Iterable[Mapping[Any, int]]) -> Counts:
    """The sums, type by type."""
    total: Counts = {}
    for each in counts:
        for kind, count in each.items():
            total[kind] = total.get(kind, 0) + count
    return total
