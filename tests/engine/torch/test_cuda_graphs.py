"""CUDA graphs: what is captured when, and that nobody's tensors are overwritten.

Capturing is played on the CPU: a launch computes again and overwrites the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from popple.engine.torch import CudaGraphs, Outbox, with_outbox
from popple.engine.torch.cuda_graphs import NUM_PLAIN_RUNS, host_operators

X = torch.tensor([1.0, 2.0])


class PlayedCapture:
    """Captures on the CPU and counts."""

    device = "cpu"

    def __init__(self) -> None:
        self.num_captures = 0

    def host_memory_like(self, tensor: Tensor) -> Tensor:
        return torch.empty_like(tensor)

    def early_fill(self, held: Tensor) -> Any:
        raise AssertionError("nothing crosses to another device")

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
    outbox: Outbox | None = None,
) -> CudaGraphs:
    told = [] if failures is None else failures
    return CudaGraphs(1, told.append, capture, outbox)


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


def test_what_was_passed_in_is_neither_kept_nor_changed() -> None:
    graphs, x = graphs_with(PlayedCapture()), X.clone()
    for _ in range(4):
        graphs.run("key", lambda y: [y.add_(1)], [x.clone()])
    graphs.run("key", doubled, [x])
    assert torch.equal(x, X)


def test_each_key_has_a_graph_and_old_ones_go() -> None:
    capture = PlayedCapture()
    graphs = graphs_with(capture)
    for _ in range(NUM_PLAIN_RUNS + 2):
        for key in range(12):
            graphs.run(key, doubled, [X])
    # The 8 newest graphs are kept: none of them for the last round.
    assert capture.num_captures == 12 + 12


def test_of_keys_that_never_come_again_nothing_is_kept() -> None:
    capture = PlayedCapture()
    graphs = graphs_with(capture)
    for number in range(200):
        graphs.run(number, doubled, [X])
    assert capture.num_captures == 0
    assert len(graphs._num_runs) < 100


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


def test_outputs_in_an_outbox_are_the_programs_own() -> None:
    outbox, capture = Outbox("cpu"), PlayedCapture()
    graphs = graphs_with(capture, outbox=outbox)

    def function(x: Tensor) -> list[Tensor]:
        outbox.send([x * 2])
        return [x * 2, x * 3]

    runs = [graphs.run("key", function, [X + number]) for number in range(5)]
    assert [float(outputs[0][0]) for outputs in runs] == [2, 4, 6, 8, 10]
    assert capture.num_captures == 1


def traced_twice() -> GraphModule:
    """x -> x * 2, x * 2 + 1, and what is like a gradient; values are known."""

    def function(x: Tensor) -> list[Tensor]:
        double = x * 2
        more = double + 1
        gradient = torch.ones_like(more) * x
        return [double, more.detach(), gradient]

    with FakeTensorMode():
        return make_fx(function)(torch.empty(2))


def test_a_graph_sends_its_outputs_before_it_goes_on() -> None:
    module, outbox = with_outbox(traced_twice(), 2, "cpu")
    assert outbox is not None
    for found, wanted in zip(module(X), [X * 2, X * 2 + 1, X], strict=True):
        assert torch.equal(found, wanted)
    assert [float(output[0]) for output in outbox.receive()] == [2, 3]
    names = [str(node.target) for node in module.graph.nodes]
    assert names.index("popple.send.default") == names.index("aten.add.Tensor") + 1
    # What the gradient begins with comes from what sends.
    ones = module.graph.find_nodes(
        op="call_function", target=torch.ops.aten.ones_like.default
    )
    assert not any(node.users for node in ones)


def overwritten(x: Tensor) -> list[Tensor]:
    double = x * 2
    output = double.detach()
    double.add_(1)
    return [output]


def silently_overwritten(x: Tensor) -> list[Tensor]:
    mean = x.mean((0, 2))
    torch.ops.aten.native_batch_norm(x, None, None, mean, mean + 1, True, 0.1, 1e-5)
    return [mean]


def test_large_outputs_inputs_and_what_is_overwritten_are_not_sent() -> None:
    with FakeTensorMode():
        large = make_fx(lambda x: [x * 2])(torch.empty(1 << 19))
        same = make_fx(lambda x: [x])(torch.empty(2))
        later = make_fx(overwritten)(torch.empty(2))
        norm = make_fx(silently_overwritten)(torch.empty(2, 3, 4))
    assert with_outbox(later, 1, "cpu") == (later, None)
    assert with_outbox(norm, 1, "cpu") == (norm, None)
    assert with_outbox(large, 1, "cpu") == (large, None)
    assert with_outbox(same, 1, "cpu") == (same, None)


def test_compiled_graphs_send_too() -> None:
    module, outbox = with_outbox(traced_twice(), 2, "cpu")
    assert outbox is not None
    compiled = torch.compile(module.forward, fullgraph=True, dynamic=False)
    for number in range(3):
        x = X + number
        assert torch.equal(compiled(x)[2], x)
        first, second = outbox.receive()
        assert torch.equal(first, x * 2)
        assert torch.equal(second, x * 2 + 1)


def test_inputs_arrive_however_they_lie() -> None:
    wide = torch.arange(12.0).reshape(3, 4)
    graphs = graphs_with(PlayedCapture())
    for _ in range(NUM_PLAIN_RUNS + 1):
        graphs.run("key", doubled, [wide])
    for given in (wide + 1, (wide + 2).t().contiguous().t(), (wide + 3)[:, ::1].half()):
        (found, *_) = graphs.run("key", doubled, [given])
        assert torch.equal(found, 2 * given.float())
