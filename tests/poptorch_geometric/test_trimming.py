from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poptorch_geometric._trimming import trim_edges, trim_nodes
from tests.poptorch_geometric.graphs import AB, pairs, ring


@given(st.lists(st.integers(2, 6), min_size=1, max_size=4), st.data())
def test_nodes_are_trimmed_to_the_limit(sizes: list[int], data: st.DataObject) -> None:
    limit = data.draw(st.integers(len(sizes), sum(sizes)))
    trimmed = trim_nodes([ring(size) for size in sizes], {None: limit})
    left = [graph.num_nodes or 0 for graph in trimmed]
    assert sum(left) == limit
    assert min(left) >= 1


@given(st.lists(st.integers(2, 6), min_size=1, max_size=4), st.data())
def test_edges_are_trimmed_to_the_limit(sizes: list[int], data: st.DataObject) -> None:
    limit = data.draw(st.integers(len(sizes), sum(sizes)))
    trimmed = trim_edges([ring(size) for size in sizes], {None: limit})
    assert sum(graph.num_edges for graph in trimmed) == limit
    assert [graph.num_nodes for graph in trimmed] == sizes


def test_graphs_that_fit_are_left_alone() -> None:
    graphs = [ring(3), ring(4)]
    assert trim_nodes(graphs, {None: 7}) == graphs


def test_only_types_that_are_too_many_are_trimmed() -> None:
    (graph,) = trim_nodes([pairs(4, 3, 5)], {"a": 2, "b": 3})
    assert (graph["a"].num_nodes, graph["b"].num_nodes) == (2, 3)


def test_edges_of_a_type_are_trimmed() -> None:
    (graph,) = trim_edges([pairs(4, 3, 5)], {AB: 2})
    assert graph.num_edges == 2


def test_every_graph_keeps_a_node() -> None:
    with pytest.raises(RuntimeError, match="left without any"):
        trim_nodes([ring(3)] * 3, {None: 2})
