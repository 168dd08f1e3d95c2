"""Graphs that hold the padding of a batch of fixed size.

Missing nodes and edges are shared out evenly among the padding graphs. A padding
graph has the attributes of the real ones: of its nodes and edges as many as it has of
them, of the graph itself as the first real graph. Its edges connect its own nodes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import BaseStorage
from torch_geometric.transforms.pad import Padding
from torch_geometric.utils import is_sparse

from ._counts import Counts, Graph, edge_ends
from .fixed_size_options import FixedSizeOptions

__all__ = ["Level", "label_level", "padding_graphs", "share_out"]

# Which nodes to train on: padding never is.
_SPLIT_MASKS = frozenset({"train_mask", "val_mask", "test_mask"})


class Level(Enum):
    """What an attribute has one element for."""

    NODE = "node"
    EDGE = "edge"
    GRAPH = "graph"


def padding_graphs(
    graphs: Sequence[Graph],
    shares: Iterable[tuple[Counts, Counts]],
    options: FixedSizeOptions,
    exclude_keys: Iterable[str],
) -> list[Graph]:
    """A padding graph for each share of nodes and edges."""
    excluded = set(exclude_keys)
    levels = [
        (store, key, _level(graphs, store, key))
        for store in graphs[0].stores
        for key in store
        if key not in excluded
    ]
    return [
        _padding_graph(graphs[0], levels, nodes, edges, options)
        for nodes, edges in shares
    ]


def share_out(
    num_graphs: int, nodes: Counts, edges: Counts
) -> list[tuple[Counts, Counts]]:
    """Nodes and edges for each of `num_graphs` padding graphs.

    Edges go to graphs with nodes for them to connect.
    """
    node_shares = _shares(nodes, [[True] * num_graphs for _ in nodes])
    hosts = [
        [all(share[end] for end in edge_ends(kind)) for share in node_shares]
        for kind in edges
    ]
    for kind, where in zip(edges, hosts, strict=True):
        if edges[kind] > 0 and not any(where):
            raise RuntimeError(
                f"{edges[kind]} padding edges{'' if kind is None else f' {kind}'} are "
                "needed to reach the fixed size, but there is no padding node for "
                "them to connect. Increase num_nodes by one at least."
            )
    return list(zip(node_shares, _shares(edges, hosts), strict=True))


def _shares(counts: Counts, hosts: Sequence[Sequence[bool]]) -> list[Counts]:
    """Counts shared out evenly among the graphs that may host the type."""
    num_graphs = len(hosts[0]) if hosts else 0
    shares: list[Counts] = [{} for _ in range(num_graphs)]
    for (kind, count), where in zip(counts.items(), hosts, strict=True):
        takers = [index for index, is_host in enumerate(where) if is_host]
        for share in shares:
            share[kind] = 0
        for place, index in enumerate(takers):
            share = count // len(takers) + (place < count % len(takers))
            shares[index][kind] = share
    return shares


def label_level(graphs: Sequence[Graph]) -> Level | None:
    """What the labels `y` of plain graphs are for; AssertionError if unclear."""
    labels = [graph.get("y") for graph in graphs if isinstance(graph, Data)]
    if not labels or not all(isinstance(y, torch.Tensor) for y in labels):
        return None
    sizes = [y.shape[0] if y.dim() else 1 for y in labels]
    is_per_node = sizes == [graph.num_nodes for graph in graphs]
    is_per_graph = all(size == 1 for size in sizes)
    if is_per_node == is_per_graph:
        raise AssertionError(
            "The labels `y` must have one element per node in every graph of the "
            f"batch, or one element in every graph, but their sizes are {sizes}."
        )
    return Level.NODE if is_per_node else Level.GRAPH


def _level(graphs: Sequence[Graph], store: BaseStorage, key: str) -> Level:
    if key == "y" and isinstance(graphs[0], Data):
        return label_level(graphs) or Level.GRAPH
    stores = [_same_store(graph, store) for graph in graphs]
    for level, question in (
        (Level.NODE, "is_node_attr"),
        (Level.EDGE, "is_edge_attr"),
    ):
        if all(hasattr(s, question) and getattr(s, question)(key) for s in stores):
            return level
    return Level.GRAPH


def _same_store(graph: Graph, store: BaseStorage) -> BaseStorage:
    key = store._key
    if key is not None:
        return graph[key]
    return graph._global_store if isinstance(graph, HeteroData) else graph._store


def _padding_graph(
    model: Graph,
    levels: Sequence[tuple[Any, str, Level]],
    nodes: Counts,
    edges: Counts,
    options: FixedSizeOptions,
) -> Graph:
    graph = copy.copy(model)
    for store, key, level in levels:
        own = _same_store(graph, store)
        if key == "num_nodes":
            own[key] = nodes[store._key]
        elif is_sparse(store[key]):
            raise TypeError(
                f"The sparse matrix `{key}` cannot be padded: keep edges as edge_index."
            )
        elif isinstance(store[key], torch.Tensor):
            count = {Level.NODE: nodes, Level.EDGE: edges}.get(level, {})
            dim = model.__cat_dim__(key, store[key], store)
            shape = list(store[key].shape)
            if level is not Level.GRAPH:
                shape[dim] = count[store._key]
            value = _pad_value(store, key, level, options)
            own[key] = store[key].new_full(shape, value)
        else:
            own[key] = options.pad_graph_defaults.get(key, store[key])
    return graph


def _pad_value(
    store: BaseStorage, key: str, level: Level, options: FixedSizeOptions
) -> Any:
    # Numbers of nodes: those of a padding graph mean its first node.
    if "index" in key or key == "face" or key in _SPLIT_MASKS:
        return 0
    value = {
        Level.NODE: options.node_pad_value,
        Level.EDGE: options.edge_pad_value,
        Level.GRAPH: options.graph_pad_value,
    }[level]
    is_by_name = isinstance(value, Padding)
    return value.get_value(store._key, key) if is_by_name else value
