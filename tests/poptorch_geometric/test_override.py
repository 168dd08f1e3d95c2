from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_geometric
from torch_geometric import nn
from torch_geometric.nn import knn

import poptorch
from poptorch_geometric import override
from tests.poptorch_geometric.graphs import ring

LOOPS = torch.tensor([[0, 1, 2, 3, 1, 0], [1, 2, 3, 0, 1, 0]])
FEATURES = torch.tensor([[1.0, 2.0], [0.0, -1.0], [3.0, 0.5], [-2.0, 1.0]])


def run(module: torch.nn.Module, *arguments: Any) -> Any:
    return poptorch.inferenceModel(module)(*arguments)


@pytest.mark.parametrize(
    "layer",
    [
        nn.ClusterGCNConv(2, 3, diag_lambda=0.5),
        nn.MFConv(2, 3, max_degree=2),
    ],
    ids=["cluster_gcn", "mf"],
)
def test_layers_compute_what_the_originals_do(layer: torch.nn.Module) -> None:
    expected = layer(FEATURES, LOOPS)
    torch.testing.assert_close(run(layer, FEATURES, LOOPS), expected)


def test_given_loops_get_their_weight() -> None:
    layer = nn.ClusterGCNConv(2, 3, diag_lambda=0.5, add_self_loops=False)
    edges = torch.cat([torch.arange(4).expand(2, -1), LOOPS[:, :4]], dim=1)
    expected = layer(FEATURES, edges)
    torch.testing.assert_close(run(layer, FEATURES, edges), expected)


def test_rows_of_all_types() -> None:
    layer = nn.HeteroLinear(2, 3, num_types=3)
    types = torch.tensor([2, 0, 2, 1])
    torch.testing.assert_close(run(layer, FEATURES, types), layer(FEATURES, types))


class Normalised(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.InstanceNorm(2, track_running_stats=True)
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, x: Any, batch: Any) -> Any:
        out = self.scale * self.norm(x, batch, 2)
        return out, poptorch.identity_loss(out.sum(), "none")


def test_running_statistics_move_on_the_device() -> None:
    batch = torch.tensor([0, 0, 1, 1])
    on_cpu, on_ipu = Normalised(), Normalised()
    on_cpu(FEATURES, batch)
    poptorch.trainingModel(on_ipu)(FEATURES, batch)
    torch.testing.assert_close(on_ipu.norm.running_mean, on_cpu.norm.running_mean)
    torch.testing.assert_close(on_ipu.norm.running_var, on_cpu.norm.running_var)


def test_the_number_of_examples_must_be_known() -> None:
    with pytest.raises(ValueError, match="batch_size"):
        run(nn.InstanceNorm(2), FEATURES, torch.tensor([0, 0, 1, 1]))


class Neighbours(torch.nn.Module):
    def forward(self, x: Any, batch: Any) -> Any:
        return knn(x, x, 2, batch, batch)


def test_functions_imported_by_name_are_traced() -> None:
    out = run(Neighbours(), FEATURES, torch.tensor([0, 0, 0, 1]))
    assert out[0].tolist() == [0, 0, 1, 1, 2, 2, 3, -1]
    assert out[1].tolist() == [0, 2, 1, 0, 2, 0, 3, -1]


def test_sizes_must_be_given() -> None:
    with pytest.raises(ValueError, match="'dim_size' needs to be set"):
        run(nn.SumAggregation(), FEATURES, torch.tensor([0, 0, 1, 1]))


def test_outside_a_trace_nothing_is_replaced() -> None:
    before = [getattr(o, n, None) for o, n, _ in override._overrides()]
    with override.static_shapes():
        assert nn.MFConv.forward is not before[-1]
    after = [getattr(o, n, None) for o, n, _ in override._overrides()]
    assert before == after
    assert not torch_geometric.is_experimental_mode_enabled("disable_dynamic_shapes")


def test_a_failed_trace_leaves_nothing_behind() -> None:
    before = nn.MFConv.forward
    with pytest.raises(ZeroDivisionError), override.static_shapes():
        raise ZeroDivisionError
    assert nn.MFConv.forward is before


def test_message_passing_trains() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.GATConv(2, 1, add_self_loops=False)

        def forward(self, graph: Any) -> Any:
            out = self.conv(graph.x, graph.edge_index)
            return poptorch.identity_loss(out.square(), "mean")

    model = poptorch.trainingModel(Model())
    losses = [model(ring(5)).item() for _ in range(3)]
    assert losses == sorted(losses, reverse=True)


def test_lines_are_the_users() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.SimpleConv()

        def forward(self, x: Any, edge_index: Any) -> Any:
            return self.conv(x, edge_index)

    model = poptorch.inferenceModel(Model())
    model(FEATURES, LOOPS)
    traced = model._get_compiled().step.traced.graph_module
    tags = [
        node.meta["popple_tag"]
        for node in traced.graph.nodes
        if "popple_tag" in node.meta
    ]
    assert {tag.line.partition(":")[0] for tag in tags} == {"test_override.py"}
