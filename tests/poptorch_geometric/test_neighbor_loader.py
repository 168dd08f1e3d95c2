from __future__ import annotations

from typing import Any

import torch
from torch_geometric.sampler import BaseSampler, SamplerOutput

import poptorch
from poptorch_geometric import FixedSizeOptions
from poptorch_geometric.neighbor_loader import FixedSizeNeighborLoader
from tests.poptorch_geometric.graphs import ring


class NextNodes(BaseSampler):
    """Samples of a ring each node and the next, and the edge between them."""

    def sample_from_nodes(self, index: Any, **kwargs: Any) -> SamplerOutput:
        seeds = index.node
        count = len(seeds)
        return SamplerOutput(
            node=torch.cat([seeds, (seeds + 1) % 12]),
            row=torch.arange(count),
            col=torch.arange(count) + count,
            edge=seeds,
            num_sampled_nodes=[count, count],
            num_sampled_edges=[count],
            metadata=(index.input_id, index.time),
        )

    def sample_from_edges(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def make_loader(**kwargs: Any) -> FixedSizeNeighborLoader:
    return FixedSizeNeighborLoader(
        ring(12), [1], neighbor_sampler=NextNodes(), batch_size=3, **kwargs
    )


def test_samples_have_the_fixed_size() -> None:
    batches = list(make_loader(fixed_size_options=FixedSizeOptions(8, 5)))
    assert len(batches) == 4
    assert batches[0].n_id.tolist() == [0, 1, 2, 1, 2, 3, 0, 0]
    assert batches[0].edges_mask.tolist() == [True] * 3 + [False] * 2
    # Padding edges connect the first padding node.
    assert batches[0].edge_index[:, 3:].tolist() == [[6, 6], [6, 6]]


def test_the_samplers_notes_are_kept() -> None:
    batch = next(iter(make_loader(fixed_size_options=FixedSizeOptions(8, 5))))
    assert batch["batch_size"] == 3
    assert batch.input_id.tolist() == [0, 1, 2]
    assert batch.num_sampled_nodes == [3, 3]


def test_sizes_are_found_by_sampling() -> None:
    batch = next(iter(make_loader()))
    assert (batch.num_nodes, batch.num_edges) == (6 + 1, 3 + 1)


def test_device_iterations_are_joined() -> None:
    loader = make_loader(options=poptorch.Options().deviceIterations(2))
    batch = next(iter(loader))
    assert (batch.x.shape, batch.edge_index.shape) == ((14, 2), (4, 4))
    assert batch.input_id.tolist() == [0, 1, 2, 3, 4, 5]
