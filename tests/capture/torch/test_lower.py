"""lower_step: values and ops of a whole step."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from popple.graph import Graph, Phase, Role, parse_graph, render_graph
from tests.capture.torch.tracing import (
    kinds,
    lower,
    lower_traced,
    of_kind,
    replayed,
    trace,
)

CONSTANT = torch.arange(3.0)


class Classifier(nn.Module):
    """A small CNN with its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.out = nn.Linear(4, 3)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        x = F.relu(self.norm(self.conv(x)))
        logits = self.out(x.mean((2, 3)))
        return logits, F.cross_entropy(logits, y)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return lower(Classifier(), torch.rand(2, 1, 6, 6), torch.tensor([0, 1]), train=True)


def names_of(graph: Graph, role: Role) -> list[str]:
    return [value.name for value in graph.with_role(role)]


def test_given_values_have_the_names_of_the_program(graph: Graph) -> None:
    assert names_of(graph, Role.INPUT) == ["input0", "input1"]
    assert names_of(graph, Role.WEIGHT) == [
        n for n, _ in Classifier().named_parameters()
    ]
    assert names_of(graph, Role.STATE) == [n for n, _ in Classifier().named_buffers()]


def test_every_trained_weight_has_a_gradient_of_its_type() -> None:
    x, y = torch.rand(2, 1, 6, 6), torch.tensor([0, 1])
    lowered = lower_traced(trace(Classifier(), x, y, train=True))
    for weight, gradient in lowered.gradients.items():
        assert lowered.graph.type_of(weight) == lowered.graph.type_of(gradient)
    assert list(lowered.gradients) == names_of(lowered.graph, Role.WEIGHT)


def test_a_weight_that_is_not_needed_has_no_gradient() -> None:
    module = Classifier()
    module.unused = nn.Parameter(torch.ones(2))
    x, y = torch.rand(2, 1, 6, 6), torch.tensor([0, 1])
    assert "unused" not in lower_traced(trace(module, x, y, train=True)).gradients


def test_a_graph_survives_its_text_form(graph: Graph) -> None:
    assert parse_graph(render_graph(graph)) == graph


def test_all_ops_know_where_they_come_from(graph: Graph) -> None:
    assert {op.line.partition(":")[0] for op in graph.ops} == {"test_lower.py"}
    assert {op.module for op in graph.ops} >= {"conv", "norm", "out"}


def test_forward_comes_before_backward(graph: Graph) -> None:
    phases = [op.phase for op in graph.ops]
    assert phases == sorted(phases, key=[Phase.FORWARD, Phase.BACKWARD].index)


def test_running_statistics_are_written_though_nobody_reads_them(graph: Graph) -> None:
    counts = [op for op in of_kind(graph, "add") if "num_batches" in op.inputs[0]]
    assert len(counts) == 1


def test_dead_code_is_dropped() -> None:
    def forward(x: Tensor) -> Tensor:
        (x @ x).exp()
        return x + 1

    assert kinds(lower(forward, torch.ones(2, 2))) == ["add"]


def test_dead_views_of_weights_are_dropped() -> None:
    layer = nn.Linear(2, 2)

    class Look(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Tensor) -> Tensor:
            self.layer.weight.t()
            return x + 1

    assert kinds(lower(Look(), torch.ones(2))) == ["add"]


def test_a_constant_is_one_value_however_often_it_is_read() -> None:
    graph = lower(lambda x: (x + CONSTANT) * CONSTANT, torch.ones(3))
    assert len(graph.with_role(Role.CONSTANT)) == 1


def test_results_written_to_out_share_its_memory() -> None:
    def forward(x: Tensor, held: Tensor) -> tuple[Tensor, Tensor]:
        torch.mm(x, x, out=held)
        return held + 1, torch.cumsum(x, 0, out=torch.empty(0))

    graph = lower(forward, torch.ones(2, 2), torch.ones(2, 2))
    product, sums = of_kind(graph, "matmul")[0], of_kind(graph, "cumulative_sum")[0]
    assert product.inputs == ("input0", "input0")
    assert graph.values[product.outputs[0]].storage == "input1"
    # What is made to fit has memory of its own.
    assert graph.values[sums.outputs[0]].storage == ""


def test_an_output_returned_twice_is_listed_once() -> None:
    graph = lower(lambda x: (y := x + 1, y), torch.ones(3))
    assert len(graph.outputs) == 1


def test_an_input_may_be_an_output() -> None:
    assert lower(lambda x: x, torch.ones(3)).outputs == ("input0",)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (torch.linalg.inv, "aten.linalg_inv_ex.default"),
        (torch.special.erfcx, "aten.special_erfcx.default"),
        (torch.cummax, "aten.cummax.default"),
    ],
)
def test_an_operator_without_an_entry_runs_and_is_named(
    function: Callable[..., Tensor], name: str
) -> None:
    x = torch.eye(3) + torch.rand(3, 3)
    step = trace(lambda x: _first(function, x), x)
    generic, *_ = of_kind(lower_traced(step).graph, "generic")
    assert generic.attrs == {"framework_op": name}
    assert torch.equal(replayed(step, x)[0], _first(function, x))


def _first(function: Callable[..., Tensor], x: Tensor) -> Tensor:
    result = function(x, 0) if function is torch.cummax else function(x)
    return result if isinstance(result, Tensor) else result[0]


def test_a_generic_op_may_give_several_results() -> None:
    graph = lower(lambda x: torch.linalg.qr(x), torch.rand(3, 3))
    (generic,) = of_kind(graph, "generic")
    assert len(generic.outputs) == len(graph.outputs) == 2


def test_an_op_may_have_no_tensor_result() -> None:
    def forward(x: Tensor) -> Tensor:
        torch._check(x.shape[0] == 3)
        return x + 1

    assert kinds(lower(forward, torch.ones(3))) == ["add"]


def test_a_transformer_layer_has_no_generic_ops() -> None:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            return F.mse_loss(self.layer(x), x)

    graph = lower(Encoder(), torch.rand(2, 5, 8), train=True)
    assert "generic" not in kinds(graph)
    assert {"layer_norm", "layer_norm_grad", "softmax"} <= set(kinds(graph))


def test_a_recurrent_layer_is_captured() -> None:
    layer = nn.GRU(4, 5)

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x)[0]

    assert kinds(lower(Recurrent(), torch.rand(3, 2, 4))).count("recurrent") == 1
