"""Collaters: what makes one batch of fixed size from a list of graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch_geometric.data import HeteroData
from torch_geometric.data.data import BaseData

from ._counts import (
    Count,
    Counts,
    Graph,
    edge_counts,
    edge_ends,
    node_counts,
    total_counts,
)
from ._padding import label_level, padding_graphs, share_out
from ._trimming import trim_edges, trim_nodes
from .fixed_size_options import FixedSizeOptions
from .pyg_collate import Collater
from .types import PyGArgsParser

__all__ = ["CombinedBatchingCollater", "FixedSizeCollater", "make_exclude_keys"]


def make_exclude_keys(include_keys: Iterable[str], data: BaseData) -> tuple[str, ...]:
    """The attributes of `data` but for `include_keys`."""
    return tuple(sorted(set(data.keys()) - set(include_keys)))


class FixedSizeCollater(Collater):
    """Makes a batch with the sizes of `fixed_size_options` of a list of graphs.

    Padding graphs behind the real ones hold the missing nodes and edges.
    `add_masks_to_batch` adds graphs_mask, nodes_mask and edges_mask, which are True
    for what is real. Graphs that are too large are refused (RuntimeError), or lose
    nodes and edges at random with `trim_nodes` and `trim_edges`.
    """

    def __init__(
        self,
        fixed_size_options: FixedSizeOptions,
        add_masks_to_batch: bool | None = False,
        trim_nodes: bool | None = False,
        trim_edges: bool | None = False,
        follow_batch: Sequence[str] | None = None,
        exclude_keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__(follow_batch, exclude_keys)
        self.opts = fixed_size_options
        self.add_masks_to_batch = add_masks_to_batch
        self.trim_nodes = trim_nodes
        self.trim_edges = trim_edges

    def __call__(self, data_list: list[Graph]) -> Any:
        """The batch of these graphs and padding."""
        if not isinstance(data_list, list):
            raise TypeError(f"Expected list, got {type(data_list).__name__}.")
        self._check_alike(data_list)
        num_padding = self.opts.num_graphs - len(data_list)
        if num_padding < 0:
            raise RuntimeError(
                f"{len(data_list)} graphs and one for padding were to make a batch of "
                f"only {self.opts.num_graphs} graphs. Increase num_graphs."
            )
        graphs = self._trimmed(data_list, num_padding)
        padding = self._padding(graphs, num_padding)
        batch = super().__call__([*graphs, *padding])
        if self.add_masks_to_batch:
            self._add_masks(batch, graphs)
        return batch

    def _check_alike(self, graphs: list[Graph]) -> None:
        first = graphs[0]
        if isinstance(first, HeteroData) and not self.opts.is_hetero():
            self.opts.to_hetero(first.node_types, first.edge_types)
        if any(type(graph) is not type(first) for graph in graphs):
            raise AssertionError("The graphs of a batch must be of one class.")
        label_level(graphs)

    def _limits(self, graphs: Sequence[Graph]) -> tuple[Counts, Counts]:
        """The fixed numbers of nodes and edges, type by type."""
        first = graphs[0]
        return (
            _by_type(self.opts.num_nodes, node_counts(first), "num_nodes"),
            _by_type(self.opts.num_edges, edge_counts(first), "num_edges"),
        )

    def _trimmed(self, graphs: list[Graph], num_padding: int) -> list[Graph]:
        if self.trim_nodes:
            graphs = trim_nodes(graphs, self._room_for_nodes(graphs, num_padding))
        return self._prune_edges(graphs) if self.trim_edges else graphs

    def _room_for_nodes(self, graphs: list[Graph], num_padding: int) -> Counts:
        """How many nodes are real at most: padding edges need a node to connect."""
        max_nodes, max_edges = self._limits(graphs)
        if not num_padding:
            return max_nodes
        nodes, edges = _all_nodes(graphs), _all_edges(graphs)
        loses_edges = any(nodes[kind] > limit for kind, limit in max_nodes.items())
        ends = {
            end
            for kind, limit in max_edges.items()
            if loses_edges or edges[kind] < limit
            for end in edge_ends(kind)
        }
        return {kind: limit - (kind in ends) for kind, limit in max_nodes.items()}

    def _prune_nodes(self, graphs: list[Graph]) -> list[Graph]:
        return trim_nodes(graphs, self._limits(graphs)[0])

    def _prune_edges(self, graphs: list[Graph]) -> list[Graph]:
        return trim_edges(graphs, self._limits(graphs)[1])

    def _padding(self, graphs: list[Graph], num_padding: int) -> list[Graph]:
        max_nodes, max_edges = self._limits(graphs)
        nodes = _missing(_all_nodes(graphs), max_nodes, "nodes", len(graphs))
        edges = _missing(_all_edges(graphs), max_edges, "edges", len(graphs))
        if num_padding:
            shares = share_out(num_padding, nodes, edges)
            return padding_graphs(graphs, shares, self.opts, self.exclude_keys or ())
        if any(nodes.values()) or any(edges.values()):
            raise RuntimeError(
                f"{len(graphs)} graphs fill a batch of {self.opts.num_graphs} graphs, "
                "so there is no graph left to hold padding nodes and edges. Pass fewer "
                "graphs or increase num_graphs."
            )
        return []

    def _add_masks(self, batch: Any, graphs: list[Graph]) -> None:
        max_nodes, max_edges = self._limits(graphs)
        batch.graphs_mask = _first_of(len(graphs), self.opts.num_graphs)
        real_nodes, real_edges = _all_nodes(graphs), _all_edges(graphs)
        for store in batch.node_stores:
            kind = store._key
            store["nodes_mask"] = _first_of(real_nodes[kind], max_nodes[kind])
        for store in batch.edge_stores:
            kind = store._key
            store["edges_mask"] = _first_of(real_edges[kind], max_edges[kind])


def _by_type(size: Count, types: Iterable[Any], option: str) -> Counts:
    if not isinstance(size, dict):
        return dict.fromkeys(types, size)
    for kind in types:
        if kind not in size:
            raise AssertionError(
                f"The graphs have the type {kind}, but the fixed size options have no "
                f"{option} for it. Add one."
            )
    return {kind: size[kind] for kind in types}


def _all_nodes(graphs: Sequence[Graph]) -> Counts:
    return total_counts(node_counts(graph) for graph in graphs)


def _all_edges(graphs: Sequence[Graph]) -> Counts:
    return total_counts(edge_counts(graph) for graph in graphs)


def _missing(counts: Counts, limits: Counts, what: str, num_graphs: int) -> Counts:
    """How many of each type padding has to add; RuntimeError if there are too many."""
    for kind, count in counts.items():
        if count > limits[kind]:
            kinds = "all" if kind is None else kind
            raise RuntimeError(
                "The fixed sizes given don't allocate enough space for the number of "
                f"{kinds} {what}: {num_graphs} graphs have {count} and the batch takes "
                f"{limits[kind]}. Increase num_{what}, or trim {what} (trim_{what} of "
                "the collater, over_size_strategy of the loader)."
            )
    return {kind: limits[kind] - count for kind, count in counts.items()}


def _first_of(num_real: int, num_all: int) -> torch.Tensor:
    return torch.arange(num_all) < num_real


class CombinedBatchingCollater:
    """Makes the data of one call of a model from all the graphs it takes.

    Every `mini_batch_size` graphs (all, by default) become a batch of their own by
    `collater`; the tensors of these batches are joined on dimension 0, and the model
    cuts them apart again.
    """

    def __init__(
        self, collater: Callable[[list[Any]], Any], mini_batch_size: int | None = None
    ) -> None:
        super().__init__()
        self.collater = collater
        self.mini_batch_size = mini_batch_size
        self.parser = PyGArgsParser()

    def __call__(self, batch: list[Any]) -> Any:
        """The joined batches."""
        size = self.mini_batch_size or len(batch)
        if len(batch) % size:
            raise AssertionError(
                f"Invalid batch size: {len(batch)} graphs are not a multiple of the "
                f"{size} of a mini-batch."
            )
        batches = [
            self.collater(batch[start : start + size])
            for start in range(0, len(batch), size)
        ]
        if len(batches) == 1:
            return batches[0]
        columns = zip(*map(self.parser.yieldTensors, batches), strict=True)
        joined = (torch.cat(tensors) for tensors in columns)
        return self.parser.reconstruct(batches[0], joined)
