from __future__ import annotations

import pytest
import torch.utils.data

from poptorch_geometric import FixedSizeOptions
from poptorch_geometric.pyg_dataloader import DataLoader
from tests.poptorch_geometric.graphs import AB, pairs, ring


def test_by_default_every_node_is_connected_to_every_other() -> None:
    options = FixedSizeOptions(num_nodes=4)
    assert (options.num_edges, options.num_graphs) == (4 * 3, 2)


def test_totals_are_sums_over_types() -> None:
    options = FixedSizeOptions({"a": 2, "b": 3}, {AB: 7})
    assert options.is_hetero()
    assert (options.total_num_nodes, options.total_num_edges) == (5, 7)


def test_one_number_becomes_one_per_type() -> None:
    options = FixedSizeOptions(5, 6).to_hetero(["a", "b"], [AB])
    assert options.num_nodes == {"a": 5, "b": 5}
    assert options.num_edges == {AB: 6}


@pytest.mark.parametrize("num_graphs", [0, 1])
def test_there_is_room_for_padding(num_graphs: int) -> None:
    with pytest.raises(ValueError, match="at least 2"):
        FixedSizeOptions(3, num_graphs=num_graphs)


def test_sizes_for_any_graphs_of_a_dataset() -> None:
    options = FixedSizeOptions.from_dataset([ring(3), ring(5)], batch_size=4)
    # Three times the largest graph, and one for padding.
    assert (options.num_nodes, options.num_edges) == (16, 16)
    assert options.num_graphs == 4


def test_sizes_for_a_dataset_of_several_types() -> None:
    graphs = [pairs(1, 4, 5), pairs(2, 3, 4)]
    options = FixedSizeOptions.from_dataset(graphs, batch_size=2)
    assert options.num_nodes == {"a": 3, "b": 5}
    assert options.num_edges == {AB: 6}


def test_a_sample_limit_looks_no_further() -> None:
    options = FixedSizeOptions.from_dataset([ring(3), ring(5)], 2, sample_limit=1)
    assert options.num_nodes == 4


def test_sizes_for_what_a_loader_gives() -> None:
    loader = DataLoader([ring(3), ring(5), ring(4)], batch_size=2)
    options = FixedSizeOptions.from_loader(loader, sample_limit=10)
    # The larger batch has 3 + 5 nodes and as many edges, in two graphs.
    assert (options.num_nodes, options.num_edges) == (9, 9)
    assert options.num_graphs == 3


def test_a_loader_without_batches_is_refused() -> None:
    empty = torch.utils.data.DataLoader([])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="no batches"):
        FixedSizeOptions.from_loader(empty)


def test_its_text_names_the_sizes() -> None:
    assert "num_nodes=4, num_edges=12" in repr(FixedSizeOptions(4))
