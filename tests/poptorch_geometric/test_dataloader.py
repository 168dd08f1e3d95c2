from __future__ import annotations

from typing import Any

import pytest
import torch

import poptorch
from poptorch_geometric import (
    FixedSizeDataLoader,
    FixedSizeOptions,
    FixedSizeStrategy,
    OverSizeStrategy,
    pyg_dataloader,
)
from poptorch_geometric.dataloader import DataLoader
from tests.poptorch_geometric.graphs import AB, pairs, ring

RINGS = [ring(size, float(size)) for size in (2, 3, 4, 5)]


def iterations(count: int) -> poptorch.Options:
    return poptorch.Options().deviceIterations(count)


def test_batch_size_counts_the_padding_graph() -> None:
    loader = FixedSizeDataLoader(RINGS, batch_size=3)
    batches = list(loader)
    # Two times the largest graph and one for padding: 2 * 5 + 1.
    assert [batch.num_nodes for batch in batches] == [11, 11]
    assert [batch.y.tolist() for batch in batches] == [[2, 3, 0], [4, 5, 0]]


def test_a_loader_for_the_host_is_no_poptorch_loader() -> None:
    loader = pyg_dataloader.FixedSizeDataLoader(RINGS, batch_size=4)
    assert not isinstance(loader, poptorch.DataLoader)
    assert [batch.y.tolist() for batch in loader] == [[2, 3, 4, 0], [5, 0, 0, 0]]


def test_device_iterations_are_joined() -> None:
    loader = FixedSizeDataLoader(RINGS, batch_size=2, options=iterations(2))
    batch = next(iter(loader))
    assert batch.edge_index.shape == (4, 6)
    assert batch.y.tolist() == [2, 0, 3, 0]
    assert (batch.num_nodes, batch.num_graphs) == (6, 2)


def test_packed_batches_are_joined() -> None:
    loader = FixedSizeDataLoader(
        RINGS,
        batch_size=3,
        fixed_size_options=FixedSizeOptions(10, num_graphs=3),
        fixed_size_strategy=FixedSizeStrategy.StreamPack,
        options=iterations(2),
    )
    # 2 + 3 of the 9 real nodes fit, 4 + 5 as well.
    (batch,) = loader
    assert batch.y.tolist() == [2, 3, 0, 4, 5, 0]
    assert batch.x.shape == (20, 2)


def test_packing_finds_its_sizes_in_the_dataset() -> None:
    loader = pyg_dataloader.FixedSizeDataLoader(
        RINGS, batch_size=3, fixed_size_strategy=FixedSizeStrategy.StreamPack
    )
    assert [batch.num_nodes for batch in loader] == [11, 11]


def test_large_graphs_can_be_skipped() -> None:
    loader = pyg_dataloader.FixedSizeDataLoader(
        RINGS,
        fixed_size_options=FixedSizeOptions(5, 5),
        fixed_size_strategy=FixedSizeStrategy.StreamPack,
        over_size_strategy=OverSizeStrategy.Skip,
    )
    assert [batch.y[0].item() for batch in loader] == [2, 3, 4]


def test_large_graphs_can_be_trimmed() -> None:
    loader = pyg_dataloader.FixedSizeDataLoader(
        RINGS,
        fixed_size_options=FixedSizeOptions(3, 2),
        over_size_strategy=OverSizeStrategy.TrimNodesAndEdges,
    )
    assert {(batch.num_nodes, batch.num_edges) for batch in loader} == {(3, 2)}


def test_one_size_for_all_types_becomes_one_per_type() -> None:
    options = FixedSizeOptions(4, 6)
    loader = pyg_dataloader.FixedSizeDataLoader(
        [pairs(2, 3, 5)], fixed_size_options=options
    )
    assert next(iter(loader))[AB].edge_index.shape == (2, 6)
    assert options.num_nodes == {"a": 4, "b": 4}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"fixed_size_options": FixedSizeOptions(9)}, AssertionError),
        ({"collate_fn": list}, AssertionError),
        (
            {
                "batch_sampler": [[0]],
                "fixed_size_strategy": FixedSizeStrategy.StreamPack,
            },
            ValueError,
        ),
        ({"fixed_size_strategy": "PadToMax"}, ValueError),
    ],
)
def test_contradictions_are_refused(arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        FixedSizeDataLoader(RINGS, batch_size=3, **arguments)


def test_graphs_of_one_size_need_no_padding() -> None:
    loader = DataLoader([ring(3)] * 4, batch_size=2, options=iterations(2))
    (batch,) = loader
    assert batch.x.shape == (12, 2)
    assert (batch.num_nodes, batch.num_graphs) == (6, 2)


class Sums(torch.nn.Module):
    def forward(self, batch: Any) -> Any:
        nodes = batch.x[:, 0] * batch.nodes_mask
        return torch.zeros(batch.num_graphs).index_add(0, batch.batch, nodes)


def test_a_model_runs_what_a_loader_gives() -> None:
    loader = FixedSizeDataLoader(RINGS, batch_size=2, options=iterations(2))
    model = poptorch.inferenceModel(Sums(), iterations(2))
    # The value of a ring is its number of nodes, and so is that of each node.
    assert [model(batch).tolist() for batch in loader] == [
        [4, 0, 9, 0],
        [16, 0, 25, 0],
    ]
