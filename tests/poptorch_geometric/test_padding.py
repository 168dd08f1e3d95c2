from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.transforms.pad import AttrNamePadding

from poptorch_geometric import FixedSizeOptions
from poptorch_geometric._padding import padding_graphs, share_out
from tests.poptorch_geometric.graphs import AB, ring

counts = st.integers(0, 50)


@given(st.integers(1, 6), st.integers(1, 50), counts)
def test_nothing_is_lost_in_sharing_out(graphs: int, nodes: int, edges: int) -> None:
    shares = share_out(graphs, {None: nodes}, {None: edges})
    node_shares = [share[None] for share, _ in shares]
    assert (sum(node_shares), max(node_shares) - min(node_shares) <= 1) == (nodes, True)
    assert sum(share[None] for _, share in shares) == edges


@given(st.integers(1, 6), st.integers(1, 50), counts)
def test_edges_go_where_nodes_are(graphs: int, nodes: int, edges: int) -> None:
    for node_share, edge_share in share_out(graphs, {None: nodes}, {None: edges}):
        assert node_share[None] or not edge_share[None]


def test_edges_need_nodes_of_both_ends() -> None:
    with pytest.raises(RuntimeError, match="no padding node"):
        share_out(2, {"a": 3, "b": 0}, {AB: 1})


def test_an_attribute_that_is_of_nodes_in_one_graph_only_is_the_graphs() -> None:
    small, large = ring(1), ring(3)
    small.weight = large.weight = torch.ones(1)  # also as many as `small` has nodes
    small.y = large.y = None
    share = [({None: 4}, {None: 4})]
    padding = padding_graphs([small, large], share, FixedSizeOptions(9), ())
    assert padding[0].weight.shape == (1,)


def test_values_by_the_name_of_the_attribute() -> None:
    by_name = AttrNamePadding({"x": 3.0}, default=0.0)
    options = FixedSizeOptions(9, node_pad_value=by_name)  # pyright: ignore
    padding = padding_graphs([ring(3)], [({None: 2}, {None: 2})], options, ())
    assert padding[0]["x"].tolist() == [[3.0, 3.0]] * 2


def test_sparse_matrices_are_refused() -> None:
    graph = ring(2)
    graph.adj = torch.eye(2).to_sparse()
    with pytest.raises(TypeError, match="edge_index"):
        padding_graphs([graph], [({None: 1}, {None: 1})], FixedSizeOptions(9), ())
