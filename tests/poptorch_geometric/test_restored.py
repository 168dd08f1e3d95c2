from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch_geometric import nn, typing

import poptorch_geometric  # noqa: F401

POINTS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [9.0, 9.0]])
EXAMPLES = torch.tensor([0, 0, 0, 1])


def test_layers_ignore_arguments_that_they_do_not_know(
    caplog: pytest.LogCaptureFixture,
) -> None:
    layer = nn.GENConv(2, 3, add_self_loops=False)
    assert layer.aggr is not None
    assert "GENConv ignores the argument add_self_loops" in caplog.text


def test_arguments_that_layers_know_arrive() -> None:
    layer = nn.SimpleConv(flow="target_to_source")
    assert layer.flow == "target_to_source"


def test_neighbours_are_found_outside_models() -> None:
    pairs = nn.knn(POINTS, POINTS, 2, EXAMPLES, EXAMPLES)
    # The only point of its example has one neighbour, itself.
    assert sorted(pairs[0].tolist()) == [0, 0, 1, 1, 2, 2, 3]
    assert sorted(zip(*pairs.tolist(), strict=True)) == [
        (0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (2, 2), (3, 3)
    ]  # fmt: skip


def test_neighbours_within_a_distance() -> None:
    edges = nn.radius_graph(POINTS, 2.5, EXAMPLES)
    assert sorted(zip(*edges.tolist(), strict=True)) == [(0, 1), (1, 0), (1, 2), (2, 1)]


def test_points_lie_in_voxels() -> None:
    assert nn.voxel_grid(POINTS, 2.0, EXAMPLES)[:3].tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.DynamicEdgeConv(torch.nn.Linear(4, 2), k=2),
        lambda: nn.GravNetConv(2, 2, 2, 2, k=2),
    ],
    ids=["edge", "gravnet"],
)
def test_layers_that_search_neighbours_can_be_made(make: Callable[[], Any]) -> None:
    assert make()(POINTS).shape == (4, 2)


@pytest.mark.filterwarnings("ignore:We do not recommend")
def test_layers_of_splines_train_outside_models() -> None:
    layer = nn.SplineConv(2, 3, dim=1, kernel_size=2)
    edges = torch.tensor([[0, 1], [1, 2]])
    layer(POINTS, edges, torch.tensor([[0.2], [0.7]])).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.abs().sum() > 0


def test_other_libraries_are_still_missing() -> None:
    if typing.WITH_PYG_LIB:
        pytest.skip("pyg-lib is installed")
    assert not typing.WITH_SEGMM
