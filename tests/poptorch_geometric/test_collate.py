from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from poptorch_geometric import FixedSizeOptions, make_exclude_keys
from poptorch_geometric.collate import CombinedBatchingCollater, FixedSizeCollater
from tests.poptorch_geometric.graphs import AB, pairs, ring


def collate(graphs: list[Any], options: FixedSizeOptions, **kwargs: Any) -> Any:
    return FixedSizeCollater(options, add_masks_to_batch=True, **kwargs)(graphs)


def test_a_batch_has_the_fixed_sizes() -> None:
    batch = collate([ring(3), ring(4)], FixedSizeOptions(10, 12, num_graphs=4))
    assert batch.x.shape == (10, 2)
    assert batch.edge_index.shape == (2, 12)
    assert batch.edge_attr.shape == (12, 1)
    assert batch.y.shape == (4,)
    assert batch.num_graphs == 4


def test_masks_are_true_for_what_is_real() -> None:
    batch = collate([ring(3), ring(4)], FixedSizeOptions(10, 12, num_graphs=4))
    assert batch.nodes_mask.tolist() == [True] * 7 + [False] * 3
    assert batch.edges_mask.tolist() == [True] * 7 + [False] * 5
    assert batch.graphs_mask.tolist() == [True, True, False, False]


def test_padding_is_shared_out_evenly() -> None:
    batch = collate([ring(3)], FixedSizeOptions(8, 6, num_graphs=3))
    # Five nodes and three edges are missing: 3 + 2 and 2 + 1.
    assert batch.ptr.tolist() == [0, 3, 6, 8]
    assert batch.edge_index[:, 3:].tolist() == [[3, 3, 6], [3, 3, 6]]


def test_pad_values_fill_tensors() -> None:
    options = FixedSizeOptions(
        5, 5, node_pad_value=7.0, edge_pad_value=8.0, graph_pad_value=9.0
    )
    batch = collate([ring(3)], options)
    assert batch.x[3:].unique().tolist() == [7.0]
    assert batch.edge_attr[3:].unique().tolist() == [8.0]
    assert batch.y.tolist() == [1.0, 9.0]


def test_labels_of_nodes_are_padded_like_nodes() -> None:
    graph = ring(3)
    graph.y = torch.arange(3)
    assert collate([graph], FixedSizeOptions(5)).y.tolist() == [0, 1, 2, 0, 0]


def test_labels_of_neither_nodes_nor_graphs_are_refused() -> None:
    graph = ring(3)
    graph.y = torch.arange(2)
    with pytest.raises(AssertionError, match="one element per node"):
        collate([graph], FixedSizeOptions(5))


def test_other_attributes_take_their_default() -> None:
    graph = ring(3)
    graph.name, graph.kind = "real", "same"
    options = FixedSizeOptions(5, pad_graph_defaults={"name": "padding"})
    batch = collate([graph], options)
    assert (batch.name, batch.kind) == (["real", "padding"], ["same", "same"])


def test_a_given_number_of_nodes_is_padded() -> None:
    graph = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    assert collate([graph], FixedSizeOptions(6, 3)).num_nodes == 6


def test_padding_is_never_trained_on() -> None:
    graph = ring(3)
    graph.train_mask = torch.ones(3, dtype=torch.bool)
    batch = collate([graph], FixedSizeOptions(5, node_pad_value=1.0))
    assert batch.train_mask.tolist() == [True] * 3 + [False] * 2


def test_excluded_attributes_are_left_out() -> None:
    batch = collate([ring(3)], FixedSizeOptions(5), exclude_keys=["edge_attr"])
    assert "edge_attr" not in batch


@pytest.mark.parametrize(("nodes", "edges"), [(4, 20), (20, 4)])
def test_too_large_graphs_are_refused(nodes: int, edges: int) -> None:
    with pytest.raises(RuntimeError, match="don't allocate enough space"):
        collate([ring(5)], FixedSizeOptions(nodes, edges))


def test_too_many_graphs_are_refused() -> None:
    with pytest.raises(RuntimeError, match="Increase num_graphs"):
        collate([ring(3)] * 3, FixedSizeOptions(20))


def test_padding_needs_a_graph() -> None:
    with pytest.raises(RuntimeError, match="no graph left"):
        collate([ring(3)] * 2, FixedSizeOptions(20))


def test_padding_edges_need_a_node() -> None:
    with pytest.raises(RuntimeError, match="no padding node"):
        collate([ring(3)], FixedSizeOptions(3, 5))


def test_a_full_batch_still_has_its_padding_graph() -> None:
    batch = collate([ring(3)], FixedSizeOptions(3, 3))
    assert batch.num_graphs == 2
    assert batch.y.tolist() == [1.0, 0.0]


def test_trimming_leaves_a_node_for_padding_edges() -> None:
    batch = collate([ring(6)], FixedSizeOptions(4, 9), trim_nodes=True)
    assert batch.nodes_mask.tolist() == [True, True, True, False]
    assert batch.edge_index.max() == 3


def test_trimming_edges_keeps_the_nodes() -> None:
    batch = collate([ring(6)], FixedSizeOptions(8, 4), trim_edges=True)
    assert (int(batch.nodes_mask.sum()), int(batch.edges_mask.sum())) == (6, 4)


def test_several_types_are_padded_each() -> None:
    options = FixedSizeOptions({"a": 4, "b": 6}, {AB: 9})
    batch = collate([pairs(2, 3, 5)], options)
    assert (batch["a"].x.shape, batch["b"].x.shape) == ((4, 2), (6, 3))
    assert batch["b"].nodes_mask.tolist() == [True] * 3 + [False] * 3
    assert batch[AB].edge_index[:, 5:].tolist() == [[2] * 4, [3] * 4]
    assert batch.graphs_mask.tolist() == [True, False]


def test_a_type_without_a_size_is_refused() -> None:
    options = FixedSizeOptions({"a": 4}, {AB: 9})
    with pytest.raises(AssertionError, match="num_nodes for it"):
        collate([pairs(2, 3, 5)], options)


def test_a_tuple_is_refused() -> None:
    with pytest.raises(TypeError, match="Expected list, got tuple"):
        FixedSizeCollater(FixedSizeOptions(5))((ring(3),))  # pyright: ignore


def test_batches_are_joined_on_dimension_0() -> None:
    collater = CombinedBatchingCollater(
        FixedSizeCollater(FixedSizeOptions(5, 6)), mini_batch_size=1
    )
    joined = collater([ring(3, 1.0), ring(4, 2.0)])
    assert joined.edge_index.shape == (4, 6)
    assert joined.x[5:9].unique().tolist() == [2.0]
    assert (joined.num_nodes, joined.num_edges, joined.num_graphs) == (5, 6, 2)


def test_a_rest_cannot_be_joined() -> None:
    collater = CombinedBatchingCollater(FixedSizeCollater(FixedSizeOptions(5)), 2)
    with pytest.raises(AssertionError, match="Invalid batch size"):
        collater([ring(3)] * 3)


def test_keys_but_for_some() -> None:
    assert make_exclude_keys(["x", "y"], ring(3)) == ("edge_attr", "edge_index")
