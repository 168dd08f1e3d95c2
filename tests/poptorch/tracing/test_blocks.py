"""Blocks: what they tell the tracer, and that they are silent without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import poptorch
from poptorch._tracing.blocks import active_trace


class Recorder:
    """A tracer that writes down what blocks say."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def set_block(self, user_id: str, ipu_id: int | None) -> None:
        self.calls.append((user_id, ipu_id))

    def clear_block(self) -> None:
        self.calls.append(())


@pytest.fixture
def trace() -> Iterator[Recorder]:
    recorder = Recorder()
    token = active_trace.set(recorder)
    yield recorder
    active_trace.reset(token)


def test_with_block_begins_and_clears(trace: Recorder) -> None:
    with poptorch.Block("A", ipu_id=1):
        pass
    assert trace.calls == [("A", 1), ()]


def test_inner_exit_does_not_restore_the_outer(trace: Recorder) -> None:
    with poptorch.Block("A", 0), poptorch.Block("B", 1):
        pass
    assert trace.calls == [("A", 0), ("B", 1), (), ()]


def test_start_has_no_end(trace: Recorder) -> None:
    poptorch.Block.start("A")
    assert trace.calls == [("A", None)]


def test_blocks_without_name_are_numbered(trace: Recorder) -> None:
    poptorch.Block.start(ipu_id=0)
    poptorch.Block.start("special")
    poptorch.Block.start()
    poptorch.Block.useAutoId()
    poptorch.Block.start()
    assert [call[0] for call in trace.calls] == ["0", "special", "1", "0"]


def test_each_trace_numbers_from_zero(trace: Recorder) -> None:
    poptorch.Block.start()
    other = Recorder()
    token = active_trace.set(other)
    poptorch.Block.start()
    active_trace.reset(token)
    assert (trace.calls, other.calls) == ([("0", None)], [("0", None)])


def test_nothing_happens_on_the_cpu() -> None:
    layer = poptorch.BeginBlock(torch.nn.Identity(), "A", 5)
    poptorch.Block.useAutoId()
    poptorch.Block.start("B", 7)
    with poptorch.Block("C"):
        assert layer(torch.ones(1)) == 1


def test_begin_block_marks_the_module_itself(trace: Recorder) -> None:
    layer = torch.nn.Linear(2, 2)
    assert poptorch.BeginBlock(layer, "A", ipu_id=1) is layer
    layer(torch.ones(2))
    layer(torch.ones(2))
    assert trace.calls == [("A", 1), ("A", 1)]


def test_hooks_keep_their_number(trace: Recorder) -> None:
    first = poptorch.BeginBlock(torch.nn.Identity(), ipu_id=0)
    second = poptorch.BeginBlock(torch.nn.Identity(), ipu_id=1)
    for layer in (first, second, first):
        layer(torch.ones(1))
    assert [call[0] for call in trace.calls] == ["0", "1", "0"]


def test_begin_block_twice_is_refused() -> None:
    layer = poptorch.BeginBlock(torch.nn.Identity())
    message = "module has already been assigned to a block"
    with pytest.raises(poptorch.Error, match=message):
        poptorch.BeginBlock(layer)


def test_begin_block_wraps_callables(trace: Recorder) -> None:
    double = poptorch.BeginBlock(lambda x: 2 * x, "A", ipu_id=3)
    assert double(4) == 8
    assert (double._user_id, double._ipu_id) == ("A", 3)
    assert trace.calls == [("A", 3)]


def test_begin_block_refuses_the_rest() -> None:
    with pytest.raises(poptorch.Error, match="Module or a function, not int"):
        poptorch.BeginBlock(3)


def test_remove_blocks(trace: Recorder) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU())
    poptorch.BeginBlock(model[1], "A")
    kept: list[str] = []
    model[1].register_forward_pre_hook(lambda *_: kept.append("user's own hook"))
    poptorch.removeBlocks(model)
    model(torch.ones(1))
    assert trace.calls == []
    assert kept == ["user's own hook"]
    poptorch.BeginBlock(model[1], "B")


def test_remove_blocks_takes_modules() -> None:
    with pytest.raises(AssertionError, match="not function"):
        poptorch.removeBlocks(lambda: None)  # pyright: ignore[reportArgumentType]


def test_block_function(trace: Recorder) -> None:
    @poptorch.BlockFunction("A", ipu_id=1)
    def triple(x: int, scale: int = 3) -> int:
        """Three times."""
        return x * scale

    assert triple(2) == 6
    assert triple(2, scale=4) == 8
    assert trace.calls == [("A", 1), (), ("A", 1), ()]
    assert triple.__doc__ == "Three times."


def test_hook_shows_in_repr() -> None:
    layer = poptorch.BeginBlock(torch.nn.Identity(), "A", ipu_id=2)
    (hook,) = layer._forward_pre_hooks.values()
    assert repr(hook) == "BeginBlock(user_id=A, ipu_id=2)"
