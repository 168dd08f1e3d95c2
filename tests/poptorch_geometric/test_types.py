from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data

import poptorch
from poptorch_geometric import PyGArgsParser
from tests.poptorch_geometric.graphs import AB, pairs, ring

PARSER = PyGArgsParser()


class Molecule(Data):
    """A graph of the user's own."""


def test_tensors_come_by_name() -> None:
    graph = ring(3)
    tensors = list(PARSER.yieldTensors(graph))
    expected = [graph.edge_attr, graph.edge_index, graph.x, graph.y]
    assert all(a is b for a, b in zip(tensors, expected, strict=True))


def test_tensors_of_several_types_come_store_by_store() -> None:
    graph = pairs(2, 3, 4)
    tensors = list(PARSER.yieldTensors(graph))
    expected = [graph.y, graph["a"].x, graph["b"].x, graph[AB].edge_index]
    assert all(a is b for a, b in zip(tensors, expected, strict=True))


def test_a_graph_is_put_together_around_other_tensors() -> None:
    graph: Any = Molecule(x=torch.ones(2), name="water")
    other: Any = PARSER.reconstruct(graph, iter([torch.zeros(2)]))
    assert type(other) is Molecule
    assert (other["name"], other["x"].tolist(), graph["x"].tolist()) == (
        "water",
        [0, 0],
        [1, 1],
    )


def test_a_joined_batch_counts_one_of_its_parts() -> None:
    batch: Any = Batch.from_data_list([pairs(2, 3, 4)])
    joined: Any = PARSER.reconstruct(
        batch, (torch.cat([t, t]) for t in PARSER.yieldTensors(batch))
    )
    assert (joined["a"].num_nodes, joined["b"].num_nodes) == (2, 3)
    assert (joined.num_edges, joined.num_graphs) == (4, 1)


def test_single_graphs_cannot_be_taken_from_other_tensors() -> None:
    batch: Any = Batch.from_data_list([ring(3)])
    other: Any = PARSER.reconstruct(batch, PARSER.yieldTensors(batch))
    with pytest.raises(RuntimeError, match="from_data_list"):
        other.to_data_list()


def test_other_things_are_refused() -> None:
    with pytest.raises(ValueError, match="graphs of torch_geometric"):
        list(PARSER.yieldTensors([1]))  # pyright: ignore[reportArgumentType]


class Doubles(torch.nn.Module):
    def forward(self, graph: Any) -> Any:
        graph.out = 2 * graph.x
        return graph


def test_a_model_takes_and_returns_graphs() -> None:
    out = poptorch.inferenceModel(Doubles())(ring(3))
    assert type(out) is Data
    assert out.out.tolist() == [[2.0, 2.0]] * 3
    assert out["edge_index"].tolist() == [[0, 1, 2], [1, 2, 0]]


def test_a_call_with_another_size_is_refused() -> None:
    model = poptorch.inferenceModel(Doubles())
    model(ring(3))
    with pytest.raises(poptorch.Error, match="Shape mismatch"):
        model(ring(4))
