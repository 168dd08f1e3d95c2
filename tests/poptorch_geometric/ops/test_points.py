"""Points on a line: distances can be read off."""

from __future__ import annotations

import pytest
import torch

from poptorch_geometric.ops import (
    knn,
    knn_graph,
    knn_interpolate,
    radius,
    radius_graph,
)

LINE = torch.tensor([[0.0], [1.0], [3.0], [7.0]])
HALVES = torch.tensor([0, 0, 1, 1])


def edges(pairs: torch.Tensor) -> list[tuple[int, ...]]:
    return sorted(tuple(pair) for pair in pairs.t().tolist() if pair[0] >= 0)


def test_nearest_neighbours() -> None:
    assert edges(knn(LINE, torch.tensor([[0.9], [6.0]]), 2)) == [
        (0, 0),
        (0, 1),
        (1, 2),
        (1, 3),
    ]


def test_neighbours_are_of_the_same_example() -> None:
    found = knn(LINE, LINE, 3, HALVES, HALVES)
    assert found.shape == (2, 12)
    assert edges(found) == [
        (a, b) for a in range(4) for b in range(4) if HALVES[a] == HALVES[b]
    ]


def test_neighbours_by_direction() -> None:
    x = torch.tensor([[10.0, 1.0], [0.0, 1.0]])
    assert knn(x, torch.tensor([[1.0, 0.0]]), 1, cosine=True).tolist() == [[0], [0]]


def test_more_neighbours_than_points_are_missing() -> None:
    assert knn(LINE[:1], LINE[:1], 2).tolist() == [[0, -1], [0, -1]]


@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_a_graph_has_no_loops_unless_asked(flow: str) -> None:
    found = knn_graph(LINE, 1, flow=flow)
    expected = [(1, 0), (0, 1), (1, 2), (2, 3)]  # (neighbour, point)
    if flow == "target_to_source":
        expected = [(point, neighbour) for neighbour, point in expected]
    assert edges(found) == sorted(expected)
    assert edges(knn_graph(LINE, 1, loop=True)) == [(i, i) for i in range(4)]


def test_an_unknown_flow_is_refused() -> None:
    with pytest.raises(AssertionError, match="flow"):
        knn_graph(LINE, 1, flow="sideways")


def test_points_closer_than_a_radius() -> None:
    found = radius(LINE, torch.tensor([[2.0]]), 2.0, max_num_neighbors=3)
    assert found.shape == (2, 3)
    assert edges(found) == [(0, 1), (0, 2)]  # 0 lies at just the radius


def test_the_nearest_are_taken_if_there_are_too_many() -> None:
    found = radius(LINE, torch.tensor([[2.0]]), 9.0, max_num_neighbors=2)
    assert edges(found) == [(0, 1), (0, 2)]


def test_a_radius_graph() -> None:
    assert edges(radius_graph(LINE, 2.5)) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert edges(radius_graph(LINE, 2.5, HALVES)) == [(0, 1), (1, 0)]
    assert (3, 3) in edges(radius_graph(LINE, 2.5, loop=True))


def test_features_between_points() -> None:
    x = torch.tensor([[0.0], [10.0], [20.0], [30.0]])
    # From 1 and 3 at distances 1 and 1; at a point itself its own feature.
    out = knn_interpolate(x, LINE, torch.tensor([[2.0], [7.0]]), k=2)
    torch.testing.assert_close(out, torch.tensor([[15.0], [30.0]]))


def test_features_from_the_same_example_only() -> None:
    x = torch.tensor([[0.0], [10.0], [20.0], [30.0]])
    out = knn_interpolate(
        x, LINE, torch.tensor([[3.0]]), torch.tensor([0, 1, 1, 1]), torch.tensor([0])
    )
    assert out.tolist() == [[0.0]]


def test_a_batch_vector_of_another_size_is_refused() -> None:
    with pytest.raises(AssertionError, match="4 points"):
        knn_graph(LINE, 1, HALVES[:3])
