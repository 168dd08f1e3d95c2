"""What marks, printing and host calls become in the Graph."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from popple.capture.torch import HostFunction, mark, note, note_node, print_tensor
from popple.graph import NO_NOTES, DType, Notes, Phase, SerialSplit, SplitDimension
from popple.tensor_text import TensorFormat
from tests.capture.torch.tracing import kinds, lower, lower_traced, of_kind, trace

X = torch.rand(2, 4)


class Limited(nn.Module):
    """A linear layer whose product may use a tenth of the memory."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        out = note(self.linear(x), Notes(memory_proportion=0.1))
        return F.mse_loss(out, torch.zeros(2, 3))


def test_a_mark_costs_nothing() -> None:
    assert kinds(lower(lambda x: mark(x.relu(), "nop", "").neg(), X)) == ["relu", "neg"]


def test_a_wish_goes_to_the_product_and_not_to_the_bias() -> None:
    graph = lower(Limited(), X)
    assert of_kind(graph, "matmul")[0].notes.memory_proportion == 0.1
    assert of_kind(graph, "add")[0].notes == NO_NOTES


def test_gradients_inherit_a_wish() -> None:
    products = of_kind(lower(Limited(), X, train=True), "matmul")
    assert [op.phase for op in products] == [Phase.FORWARD, Phase.BACKWARD]
    assert {op.notes.memory_proportion for op in products} == {0.1}


def test_a_wish_for_what_has_no_plan_is_without_effect() -> None:
    graph = lower(lambda x: note(x.relu(), Notes(memory_proportion=0.1)), X)
    assert of_kind(graph, "relu")[0].notes == NO_NOTES


def test_a_serial_product_says_along_what() -> None:
    def forward(a: Tensor, b: Tensor) -> Tensor:
        return note(a @ b, Notes(serial_split=SerialSplit(SplitDimension.INNER, 2)))

    (product,) = of_kind(lower(forward, X, X.T.contiguous()), "matmul")
    assert product.notes.serial_split == SerialSplit(SplitDimension.INNER, 2)


def test_a_checkpoint_is_noted_on_any_op() -> None:
    graph = lower(lambda x: note(x.relu(), Notes(is_checkpoint=True)), X)
    assert of_kind(graph, "relu")[0].notes == Notes(is_checkpoint=True)


def test_printing_is_a_copy_to_the_host() -> None:
    def forward(x: Tensor) -> Tensor:
        return print_tensor(x.relu(), "x", "", TensorFormat()).neg()

    graph = lower(forward, X)
    assert kinds(graph) == ["relu", "stream_out", "neg"]
    assert of_kind(graph, "stream_out")[0].inputs == of_kind(graph, "relu")[0].outputs


def test_printing_what_nobody_uses_is_dropped() -> None:
    def forward(x: Tensor) -> Tensor:
        print_tensor(x, "x", "", TensorFormat())
        return x.neg()

    assert kinds(lower(forward, X)) == ["neg"]


def test_a_host_call_sends_its_operands_and_fetches_its_results() -> None:
    def forward(x: Tensor) -> list[Tensor]:
        results = ((X.shape, X.dtype),) * 2
        return HostFunction(lambda t: [t, t], "f", results).call([x.relu()], None)

    assert kinds(lower(forward, X)) == ["relu", "stream_out", "stream_in", "stream_in"]


def test_notes_on_a_node_reach_its_op() -> None:
    step = trace(lambda x: x @ x.T, X)
    for node in step.graph_module.graph.nodes:
        if str(node.target) == "aten.mm.default":
            note_node(node, Notes(partials=DType.F16))
            note_node(node, Notes(memory_proportion=0.1))
    (product,) = of_kind(lower_traced(step).graph, "matmul")
    assert product.notes == Notes(partials=DType.F16, memory_proportion=0.1)
