"""Tags: where every op comes from, forward and backward."""

from __future__ import annotations

import inspect

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from popple.capture.torch import ActiveTrace, Block
from popple.capture.torch.tags import user_line
from popple.graph import Graph, Op, Phase
from tests.capture.torch.tracing import lower, lower_traced, of_kind, trace


class Staged(nn.Module):
    """Two layers in two blocks, with a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.trace: ActiveTrace | None = None

    def forward(self, x: Tensor) -> Tensor:
        assert self.trace is not None
        self.trace.set_block(Block("b", 0, 0))
        x = self.first(x)
        self.trace.set_block(Block("late", 1, 1))
        return F.mse_loss(self.second(x), x)


@pytest.fixture
def graph() -> Graph:
    module = Staged()
    step = trace(
        module,
        torch.ones(2, 4),
        train=True,
        listener=lambda trace: setattr(module, "trace", trace),
    )
    return lower_traced(step).graph


def phases(graph: Graph, kind: str) -> list[tuple[Phase, str, int, int]]:
    ops = of_kind(graph, kind)
    return [(op.phase, op.module, op.chip, op.stage) for op in ops]


def test_backward_ops_have_the_module_and_place_of_their_forward_op(
    graph: Graph,
) -> None:
    assert phases(graph, "tanh") == [(Phase.FORWARD, "second.1", 1, 1)]
    assert phases(graph, "tanh_grad") == [(Phase.BACKWARD, "second.1", 1, 1)]


def test_every_product_is_placed_with_its_layer(graph: Graph) -> None:
    # Each layer: the product; the gradient of its weight; for the second one also
    # that of its input (the first one's input needs none).
    assert sorted(phases(graph, "matmul"), key=str) == sorted(
        [
            (Phase.FORWARD, "first", 0, 0),
            (Phase.FORWARD, "second.0", 1, 1),
            (Phase.BACKWARD, "second.0", 1, 1),
            (Phase.BACKWARD, "second.0", 1, 1),
            (Phase.BACKWARD, "first", 0, 0),
        ],
        key=str,
    )


def test_backward_ops_have_the_line_of_their_forward_op(graph: Graph) -> None:
    forward, *backward = (op.line for op in of_kind(graph, "matmul") if _first(op))
    assert forward.startswith("test_tags.py:")
    assert backward == [forward]


def _first(op: Op) -> bool:
    return op.module == "first"


def test_the_sum_of_gradients_lies_beside_its_operands(graph: Graph) -> None:
    # x feeds the second block and the loss: autograd adds the two gradients.
    sums = [op for op in of_kind(graph, "add") if op.phase is Phase.BACKWARD]
    assert [(op.chip, op.stage) for op in sums] == [(1, 1)]


def test_backward_ops_of_the_first_block_stay_in_it() -> None:
    class Late(Staged):
        def forward(self, x: Tensor) -> Tensor:
            assert self.trace is not None
            x = self.first(x) + 1  # before any block
            self.trace.set_block(Block("late", 1, 1))
            return F.mse_loss(self.second(x), torch.zeros_like(x))

    module = Late()
    step = trace(
        module,
        torch.ones(2, 4),
        train=True,
        listener=lambda trace: setattr(module, "trace", trace),
    )
    ops = [op for op in lower_traced(step).graph.ops if op.module == "first"]
    assert {(op.chip, op.stage) for op in ops} == {(0, 0)}
    assert Phase.BACKWARD in {op.phase for op in ops}


def test_lines_are_those_of_the_users_file() -> None:
    def forward(x: Tensor) -> Tensor:
        return x.relu()

    (op,) = lower(forward, torch.ones(2)).ops
    line = inspect.getsourcelines(forward)[1] + 1
    assert op.line == f"test_tags.py:{line}"


def test_a_line_inside_torch_is_not_the_users() -> None:
    layer = nn.Linear(2, 2)
    lines = {op.line for op in lower(lambda x: layer(x), torch.ones(1, 2)).ops}
    assert len(lines) == 1
    assert next(iter(lines)).startswith("test_tags.py:")


def test_user_line_is_the_callers() -> None:
    line = inspect.currentframe()
    assert line is not None
    assert user_line() == f"test_tags.py:{line.f_lineno}"


def test_modules_are_named_by_their_path() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    (relu,) = of_kind(lower(module, torch.ones(1, 2)), "relu")
    assert relu.module == "1.0"


def test_a_module_that_raises_is_left() -> None:
    class Picky(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise ValueError("no")

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.picky = Picky()

        def forward(self, x: Tensor) -> Tensor:
            try:
                return self.picky(x)
            except ValueError:
                return x.relu()

    (relu,) = lower(Model(), torch.ones(2)).ops
    assert relu.module == ""


def test_ops_recorded_by_no_gradient_do_not_take_a_neighbours_tag() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self.plain = nn.ReLU()

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.inner(x)
            with torch.no_grad():
                self.plain(hidden)
            return F.mse_loss(hidden, x)

    graph = lower(Mixed(), torch.ones(1, 2), train=True)
    backward = [op for op in of_kind(graph, "matmul") if op.phase is Phase.BACKWARD]
    assert {op.module for op in backward} == {"inner"}
