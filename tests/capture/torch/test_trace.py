"""trace_step: what a traced step takes and gives, and what it refuses."""

from __future__ import annotations

import logging

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from popple.errors import CaptureError
from tests.capture.torch.tracing import Function, operators, replayed, trace


class Layer(nn.Module):
    """One linear layer and a buffer, with a loss and a plain output."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x: Tensor) -> dict[str, Tensor | int]:
        y = self.linear(x) * self.scale
        return {"y": y, "number": 7, "loss": F.mse_loss(y, torch.zeros_like(y))}


def test_arguments_are_parameters_buffers_inputs() -> None:
    step = trace(Layer(), torch.ones(4, 3), train=True)
    assert step.parameters == ("linear.weight", "linear.bias")
    assert (step.buffers, step.num_inputs) == (("scale",), 1)
    assert len(step.graph_module.graph.find_nodes(op="placeholder")) == 4


def test_results_are_outputs_then_gradients() -> None:
    layer = Layer()
    x = torch.randn(4, 3)
    step = trace(layer, x, train=True)
    results = replayed(step, *layer.parameters(), *layer.buffers(), x)
    expected = layer(x)
    expected["loss"].backward()
    assert torch.equal(results[0], expected["y"])
    assert torch.equal(results[2], layer.linear.weight.grad)  # type: ignore[arg-type]
    assert step.num_outputs == 2


def test_the_example_keeps_what_is_no_tensor() -> None:
    example = trace(Layer(), torch.ones(4, 3)).example
    assert (list(example), example["number"]) == (["y", "number", "loss"], 7)


def test_inference_has_no_backward_pass() -> None:
    step = trace(Layer(), torch.ones(4, 3))
    assert step.trainable == ()
    assert not any("backward" in name for name in operators(step))


def test_a_parameter_the_loss_does_not_need_has_no_gradient() -> None:
    class Half(Layer):
        def __init__(self) -> None:
            super().__init__()
            self.unused = nn.Parameter(torch.ones(2))

    step = trace(Half(), torch.ones(4, 3), train=True)
    results = step.graph_module.graph.output_node().args[0]
    gradients = dict(zip(step.trainable, results[2:], strict=True))  # type: ignore[index]
    assert [name for name, node in gradients.items() if node is None] == ["unused"]


def test_a_model_without_trained_weights_may_still_have_a_loss() -> None:
    step = trace(Function(lambda x: F.mse_loss(x, 2 * x)), torch.ones(3), train=True)
    assert step.num_outputs == 1


def test_a_loss_that_no_weight_feeds_gives_no_gradients() -> None:
    class Fixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x: Tensor) -> Tensor:
            return F.mse_loss(x, torch.zeros_like(x))

    step = trace(Fixed(), torch.ones(3), train=True)
    assert step.graph_module.graph.output_node().args[0][1:] == [None]  # type: ignore[index]


def test_tracing_computes_nothing() -> None:
    layer = nn.BatchNorm1d(3)
    trace(layer, torch.randn(8, 3))
    assert layer.running_mean is not None
    assert torch.equal(layer.running_mean, torch.zeros(3))


def test_tracing_draws_no_random_numbers() -> None:
    before = torch.get_rng_state()
    trace(lambda x: F.dropout(x, training=True) + torch.rand(3), torch.ones(3))
    assert torch.equal(before, torch.get_rng_state())


def test_arguments_that_share_memory_are_traced_apart() -> None:
    both = torch.zeros(4)
    step = trace(lambda a, b: (a.add_(1), b * 1), both[:2], both[2:])
    first, second = replayed(step, torch.zeros(2), torch.zeros(2))
    assert first.tolist() == [1, 1]
    assert second.tolist() == [0, 0]


def test_tied_parameters_are_one_argument() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(3, 3, bias=False)
            self.b = nn.Linear(3, 3, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x: Tensor) -> Tensor:
            return F.mse_loss(self.b(self.a(x)), x)

    module = Tied()
    x = torch.randn(2, 3)
    step = trace(module, x, train=True)
    module(x).backward()
    gradient = replayed(step, module.a.weight, x)[1]
    torch.testing.assert_close(gradient, module.a.weight.grad)


@pytest.mark.parametrize(
    "change",
    [
        lambda module: setattr(module, "scale", module.scale + 1),
        lambda module: delattr(module, "scale"),
        lambda module: setattr(module.linear, "bias", None),
    ],
    ids=["assigned", "deleted", "inner parameter"],
)
def test_parameters_and_buffers_are_not_replaced(change: object) -> None:
    class Changing(Layer):
        def forward(self, x: Tensor) -> dict[str, Tensor | int]:
            result = super().forward(x)
            change(self)  # type: ignore[operator]
            return result

    module = Changing()
    with pytest.raises(CaptureError, match="forward assigns or deletes") as error:
        trace(module, torch.ones(4, 3))
    assert "copy_" in error.value.remedy
    assert module.linear.bias is not None


def test_errors_of_the_program_are_raised_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(RuntimeError):
        trace(lambda a, b: a + b, torch.ones(2), torch.ones(3))
    assert not caplog.records


def test_python_runs_once() -> None:
    runs: list[int] = []
    trace(lambda x: runs.append(1) or x * 2, torch.ones(2))
    assert runs == [1]
