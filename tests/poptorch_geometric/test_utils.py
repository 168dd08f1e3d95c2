from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.nn import GCNConv, SimpleConv

import poptorch
from poptorch_geometric import TrainingStepper, set_aggregation_dim_size
from tests.poptorch_geometric.graphs import ring


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(2, 3, add_self_loops=False)

    def forward(self, x: Any, edge_index: Any) -> Any:
        out = self.conv(x, edge_index)
        return out, torch.nn.functional.mse_loss(out, torch.ones_like(out))


def arguments(num_nodes: int) -> tuple[Any, Any]:
    graph = ring(num_nodes)
    return graph.x, graph.edge_index


def test_both_devices_train_alike() -> None:
    stepper = TrainingStepper(Model(), lr=0.1)
    before = [weight.detach().clone() for weight in stepper.cpu_model.parameters()]
    stepper.run(3, arguments(4))
    after = list(stepper.cpu_model.parameters())
    assert not any(map(torch.equal, before, after))


def test_of_two_batches_the_common_part_is_compared() -> None:
    stepper = TrainingStepper(Model())
    stepper.run(1, arguments(4), arguments(6))  # all nodes of rings are alike


def test_a_difference_is_found() -> None:
    stepper = TrainingStepper(Model())
    x, edge_index = arguments(4)
    with pytest.raises(AssertionError, match="Output was not equal"):
        stepper.run(1, (x, edge_index), (2 * x, edge_index))


def test_a_model_without_parameters_has_nothing_to_train() -> None:
    stepper = TrainingStepper(SimpleConv())
    with pytest.raises(AssertionError, match="no parameters"):
        stepper.run(1, arguments(4))


def test_times_are_measured_by_device() -> None:
    times = TrainingStepper(Model()).benchmark(1, arguments(4), ("ipu", "cpu"))
    assert times.keys() == {"ipu_time", "cpu_time"}


def test_aggregations_get_their_size() -> None:
    conv = SimpleConv()
    set_aggregation_dim_size(conv, 7)
    x, edge_index = arguments(4)
    assert conv(x, edge_index).shape == (7, 2)
    assert poptorch.inferenceModel(conv)(x, edge_index).shape == (7, 2)
