from __future__ import annotations

from typing import Any

import pytest
from torch.utils.data import RandomSampler

from poptorch_geometric.stream_packing_sampler import StreamPackingSampler
from tests.poptorch_geometric.graphs import ring

GRAPHS = [ring(size) for size in (3, 4, 2, 5)]


def test_graphs_are_packed_in_their_order() -> None:
    sampler = StreamPackingSampler(GRAPHS, 3, max_num_nodes=9, max_num_edges=9)
    # 3 + 4 + 2 = 9 fills a batch of three graphs.
    assert list(sampler) == [[0, 1, 2], [3]]


def test_a_node_is_kept_for_every_missing_graph() -> None:
    sampler = StreamPackingSampler(GRAPHS, 4, max_num_nodes=9, max_num_edges=9)
    # 3 + 4 + 2 = 9 of 9 nodes leave none for a fourth graph.
    assert list(sampler) == [[0, 1], [2, 3]]


def test_by_default_as_many_graphs_as_allowed_fit() -> None:
    sampler = StreamPackingSampler(GRAPHS, max_num_graphs=2)
    assert (sampler.max_num_nodes, sampler.max_num_edges) == (10, 10)
    assert list(sampler) == [[0, 1], [2, 3]]
    assert len(sampler) == 2


def test_a_graph_that_never_fits_is_an_error() -> None:
    sampler = StreamPackingSampler(GRAPHS, 1, max_num_nodes=4)
    with pytest.raises(RuntimeError, match="Graph 3 with 5 nodes"):
        list(sampler)


def test_or_is_skipped() -> None:
    sampler = StreamPackingSampler(GRAPHS, 1, max_num_nodes=4, allow_skip_data=True)
    assert list(sampler) == [[0], [1], [2]]


def test_graphs_come_in_the_order_of_the_base_sampler() -> None:
    sampler = StreamPackingSampler(GRAPHS, 2, base_sampler=[3, 2, 1])
    assert list(sampler) == [[3, 2], [1]]


def test_a_random_order_has_no_length() -> None:
    sampler = StreamPackingSampler(GRAPHS, 2, base_sampler=RandomSampler(GRAPHS))
    with pytest.raises(NotImplementedError, match="random"):
        len(sampler)


@pytest.mark.parametrize(
    "limits",
    [
        {"max_num_graphs": 0},
        {"max_num_graphs": 2, "max_num_nodes": 1},
        {"max_num_graphs": 2, "max_num_edges": 1},
        {"max_num_graphs": 2, "base_sampler": []},
    ],
)
def test_impossible_limits_are_refused(limits: Any) -> None:
    with pytest.raises(ValueError, match=r"at least|no graphs"):
        StreamPackingSampler(GRAPHS, **limits)
