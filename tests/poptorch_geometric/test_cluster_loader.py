from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.loader import ClusterData

import poptorch
from poptorch_geometric import FixedSizeOptions, OverSizeStrategy, pyg_cluster_loader
from poptorch_geometric.cluster_loader import FixedSizeClusterLoader
from tests.poptorch_geometric.graphs import ring


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> ClusterData:
    """A ring of twelve nodes in four clusters of three neighbours each."""
    monkeypatch.setattr(
        ClusterData, "_metis", lambda self, edges, n: torch.arange(n) // 3
    )
    return ClusterData(ring(12), num_parts=4, log=False)


def test_clusters_have_the_fixed_size(clusters: ClusterData) -> None:
    loader = pyg_cluster_loader.FixedSizeClusterLoader(
        clusters, FixedSizeOptions(5, 4), batch_size=1
    )
    batches = list(loader)
    assert len(batches) == 4
    # Three nodes in a row are connected by two edges.
    assert all(batch.nodes_mask.tolist() == [1, 1, 1, 0, 0] for batch in batches)
    assert all(batch.edges_mask.tolist() == [1, 1, 0, 0] for batch in batches)


def test_large_clusters_are_trimmed(clusters: ClusterData) -> None:
    loader = FixedSizeClusterLoader(clusters, FixedSizeOptions(3, 4), batch_size=2)
    assert [int(batch.nodes_mask.sum()) for batch in loader] == [2, 2]


def test_or_refused(clusters: ClusterData) -> None:
    loader = FixedSizeClusterLoader(
        clusters, FixedSizeOptions(3, 4), 2, over_size_strategy=OverSizeStrategy.Error
    )
    with pytest.raises(RuntimeError, match="don't allocate enough space"):
        next(iter(loader))


def test_device_iterations_are_joined(clusters: ClusterData) -> None:
    options = poptorch.Options().deviceIterations(2)
    loader = FixedSizeClusterLoader(clusters, FixedSizeOptions(5, 4), options=options)
    batch = next(iter(loader))
    assert (batch.x.shape, batch.edge_index.shape) == ((10, 2), (4, 4))


@pytest.mark.parametrize(
    "arguments",
    [
        {"fixed_size_options": FixedSizeOptions(5, num_graphs=3)},
        {"fixed_size_options": FixedSizeOptions(5), "shuffle": True},
    ],
)
def test_contradictions_are_refused(clusters: ClusterData, arguments: Any) -> None:
    with pytest.raises(AssertionError):
        FixedSizeClusterLoader(clusters, **arguments)
