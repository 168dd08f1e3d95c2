"""Removing nodes and edges at random until graphs fit into a batch of fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ._counts import Counts, Graph, edge_counts, node_counts

__all__ = ["trim_edges", "trim_nodes"]

Masks = list[torch.Tensor]


def trim_nodes(graphs: Sequence[Graph], limits: Counts) -> list[Graph]:
    """The graphs with as many nodes as fit; each keeps one of every type it has."""
    counts = [node_counts(graph) for graph in graphs]
    for kind, limit in limits.items():
        num_graphs = sum(count.get(kind, 0) > 0 for count in counts)
        if limit < num_graphs:
            raise RuntimeError(
                f"{num_graphs} graphs cannot be trimmed to {limit} nodes"
                f"{'' if kind is None else f' of type {kind}'} in all: some would be "
                "left without any. Increase num_nodes, or put fewer graphs in a batch."
            )
    kept = _kept_masks(counts, limits)
    return [
        graph.subgraph(_selection(masks)) if masks else graph
        for graph, masks in zip(graphs, kept, strict=True)
    ]


def trim_edges(graphs: Sequence[Graph], limits: Counts) -> list[Graph]:
    """The graphs with as many edges as fit; each keeps one of every type it has."""
    kept = _kept_masks([edge_counts(graph) for graph in graphs], limits)
    return [
        graph.edge_subgraph(_selection(masks)) if masks else graph
        for graph, masks in zip(graphs, kept, strict=True)
    ]


def _selection(masks: dict[Any, torch.Tensor]) -> Any:
    """What torch_geometric's subgraph functions take."""
    return masks.get(None, masks)


def _kept_masks(
    counts: Sequence[Counts], limits: Counts
) -> list[dict[Any, torch.Tensor]]:
    """For each graph, by type, which elements stay; types that fit are left out."""
    kept: list[dict[Any, torch.Tensor]] = [{} for _ in counts]
    for kind, limit in limits.items():
        sizes = [count.get(kind, 0) for count in counts]
        if sum(sizes) > limit:
            for masks, mask in zip(kept, _random_masks(sizes, limit), strict=True):
                masks[kind] = mask
    return kept


def _random_masks(sizes: Sequence[int], limit: int) -> Masks:
    """Masks that keep `limit` elements in all, and one at least of each graph."""
    may_go = torch.cat([_all_but_one(size) for size in sizes]).nonzero().view(-1)
    order = torch.randperm(len(may_go))[: sum(sizes) - limit]
    stays = torch.ones(sum(sizes), dtype=torch.bool)
    stays[may_go[order]] = False
    return list(stays.split(list(sizes)))


def _all_but_one(size: int) -> torch.Tensor:
    mask = torch.ones(size, dtype=torch.bool)
    if size:
        mask[torch.randint(size, (1,))] = False
    return mask
