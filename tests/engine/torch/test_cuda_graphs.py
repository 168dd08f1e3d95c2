"""CUDA graphs: what is captured when, and that nobody's tensors are overwritten.

Capturing is played on the CPU: a launch computes again and overwrites the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from popple.engine.torch import CudaGraphs
from popple.engine.torch.cuda_graphs import NUM_PLAIN_RUNS, host_operators

X = torch.tensor([1.0, 2.0])


class PlayedCapture:
    """Captures on the CPU and counts."""

    device = "cpu"

    def __init__(self) -> None:
        self.num_captures = 0
        self.num_waits = 0

    def host_memory_like(self, tensor: Tensor) -> Tensor:
        return torch.empty_like(tensor)

    def wait(self) -> None:
        self.num_waits += 1

    def __call__(
        self, function: Callable[..., list[Any]], inputs: Sequence[Tensor]
    ) -> tuple[Callable[[], None], list[Any]]:
        self.num_captures += 1
        results = function(*inputs)

        def replay() -> None:
            for held, new in zip(results, function(*inputs), strict=True):
                held.copy_(new)

        return replay, results


class RefusedCapture(PlayedCapture):
    """A driver that does not capture."""

    def __call__(self, *_: Any) -> Any:
        raise RuntimeError("operation not permitted\nwhen stream is capturing")


def doubled(x: Tensor) -> list[Tensor]:
    return [x * 2, x * 3]


def graphs_with(
    capture: PlayedCapture,
    failures: list[str] | None = None,
    is_awaited: bool = False,
) -> CudaGraphs:
    told = [] if failures is None else failures
    return CudaGraphs(1, told.append, capture, is_awaited)


def test_the_first_runs_are_plain_then_one_capture_serves_all() -> None:
    capture = PlayedCapture()
    graphs = graphs_with(capture)
    for number in range(NUM_PLAIN_RUNS + 3):
        results = graphs.run("key", doubled, [X + number])
        assert torch.equal(results[0], (X + number) * 2)
        assert capture.num_captures == (number >= NUM_PLAIN_RUNS)


def test_outputs_are_kept_though_the_next_launch_overwrites_its_results() -> None:
    graphs = graphs_with(PlayedCapture())
    runs = [graphs.run("key", doubled, [X + number]) for number in range(5)]
    assert [float(outputs[0][0]) for outputs in runs] == [2, 4, 6, 8, 10]
    # Only outputs are copied: the last two runs share the other result.
    assert runs[-1][1] is runs[-2][1]


@pytest.mark.parametrize("size", [2, 1 << 19])
def test_awaited_runs_bring_outputs_to_the_host_however_large(size: int) -> None:
    capture = PlayedCapture()
    graphs = graphs_with(capture, is_awaited=True)
    x = torch.arange(size, dtype=torch.float32)
    runs = [graphs.run("key", doubled, [x + number]) for number in range(5)]
    for number, outputs in enumerate(runs):
        assert torch.equal(outputs[0], (x + number) * 2)
    assert capture.num_waits == 5 - NUM_PLAIN_RUNS
    assert runs[-1][1] is runs[-2][1]


def test_what_was_passed_in_is_neither_kept_nor_changed() -> None:
    graphs, x = graphs_with(PlayedCapture()), X.clone()
    for _ in range(4):
        graphs.run("key", lambda y: [y.add_(1)], [x.clone()])
    graphs.run("key", doubled, [x])
    assert torch.equal(x, X)


def test_each_key_has_a_graph_and_old_ones_go() -> None:
    capture = PlayedCapture()
    graphs = graphs_with(capture)
    for _ in range(2):
        for key in range(12):
            graphs.run(key, doubled, [X])
    # Two runs are plain. The 8 newest graphs are kept: none for the second round.
    assert capture.num_captures == 10 + 12


def test_where_capturing_fails_runs_go_on_and_it_is_told_once() -> None:
    failures: list[str] = []
    graphs = graphs_with(RefusedCapture(), failures)
    for _ in range(4):
        assert torch.equal(graphs.run("key", doubled, [X])[0], X * 2)
    assert failures == ["operation not permitted"]


def test_operators_on_the_host_are_found() -> None:
    def function(x: Tensor) -> list[Tensor]:
        return [x.cpu().exp(), x.sin()]

    with FakeTensorMode():
        traced = make_fx(function)(torch.empty(2, device="cuda"))
    assert host_operators(traced.graph) == (
        "aten._to_copy.default",
        "aten.exp.default",
    )
