"""CUDA graphs: functions over a GPU's memory, captured once, then one launch each.

A graph reads its inputs from memory of its own and leaves its results there, where the
next launch overwrites them: inputs are copied in, and results that anyone keeps are
copied out. Large inputs cross to the GPU while the launch before is still at work.

Where the host waits for each launch anyway, small inputs travel as part of the graph,
from pinned memory: to launch a transfer takes longer than the transfer. Small outputs
do, too, and the host need not wait for the rest of the launch (`outbox.py`).
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.fx import Graph, Node

from popple.capture.torch import all_nodes
from popple.engine.torch.rewrites.outbox import SMALL, Outbox
from popple.marks import HOST_CALL, PRINT_TENSOR, operator_name

Function = Callable[..., list[Any]]
Fill = Callable[[Tensor, Tensor], None]
"""Copies an input to where a graph reads it."""

LARGE = 1 << 18
"""Bytes from which on an input crosses beside the launch before."""


class Capture(Protocol):
    """Makes what runs a function again; tells where its results are."""

    device: str

    def __call__(
        self, function: Function, inputs: Sequence[Tensor]
    ) -> tuple[Callable[[], None], list[Any]]: ...

    def host_memory_like(self, tensor: Tensor) -> Tensor: ...

    def early_fill(self, held: Tensor) -> Fill: ...


NUM_PLAIN_RUNS = 2
"""Libraries choose and allocate in their first runs, which cannot be captured."""

# Keys contain settings of the optimiser; a program that changes them in every step must
# not fill the GPU's memory with graphs.
_NUM_KEPT = 8
_NUM_NOTED = 64
_ON_HOST = frozenset({HOST_CALL, PRINT_TENSOR})


def host_operators(graph: Graph) -> tuple[str, ...]:
    """Operators that need the host, where a CUDA graph cannot go."""
    found = {
        str(node.target)
        for node in all_nodes(graph)
        if node.op == "call_function" and _is_on_host(node)
    }
    return tuple(sorted(found))


def _is_on_host(node: Node) -> bool:
    value = node.meta.get("val")
    is_there = isinstance(value, Tensor) and value.device.type == "cpu"
    return is_there or operator_name(node.target) in _ON_HOST


class GpuCapture:
    """Captures functions over a GPU's memory; all graphs share one pool of memory.

    They may, since nothing in it outlives a run.
    """

    device = "cuda"

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._crossing = torch.cuda.Stream()

    def __call__(
        self, function: Function, inputs: Sequence[Tensor]
    ) -> tuple[Callable[[], None], list[Any]]:
        """What runs the function on these inputs again, and where its results are."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            results = function(*inputs)
        return graph.replay, results

    def host_memory_like(self, tensor: Tensor) -> Tensor:
        """Memory of the host that the GPU reads and writes by itself."""
        return torch.empty_like(tensor, device="cpu", pin_memory=True)

    def early_fill(self, held: Tensor) -> Fill:
        """What fills this input without waiting for the launch that still reads it."""
        return _EarlyFill(held, self._crossing)


class _EarlyFill:
    """Brings an input to the GPU beside what runs there, then to its place.

    From the host it goes to memory of its own, on a stream of its own; the way from
    there, which is short, waits for the launch before.
    """

    def __init__(self, held: Tensor, crossing: torch.cuda.Stream) -> None:
        self._waiting = torch.empty_like(held)
        self._crossing = crossing
        # Written to once whoever had this memory before is done with it.
        self._is_taken = torch.cuda.Event()
        self._is_taken.record()

    def __call__(self, held: Tensor, given: Tensor) -> None:
        if not given.is_cpu:
            _fill(held, given)
            return
        self._crossing.wait_event(self._is_taken)
        with torch.cuda.stream(self._crossing):
            _fill(self._waiting, given)
        torch.cuda.current_stream().wait_stream(self._crossing)
        held.copy_(self._waiting)
        self._is_taken.record()


class CudaGraphs:
    """Runs functions, each captured under a key once the first runs are over.

    A function's memory besides its inputs must stay where it is. The first `num_copied`
    results are copies; others are good until the next run. If the function sends those
    copies to an `outbox`, they are taken from there and a run is over when they have
    arrived. If capturing fails, `on_failure` is told why and functions run as they are
    from then on.
    """

    def __init__(
        self,
        num_copied: int,
        on_failure: Callable[[str], None],
        capture: Capture,
        outbox: Outbox | None = None,
    ) -> None:
        self._num_copied = num_copied
        self._on_failure = on_failure
        self._capture = capture
        self._outbox = outbox
        self._num_runs: Counter[Hashable] = Counter()
        self._is_on = True
        self._captured: dict[Hashable, _Captured] = {}

    def run(
        self, key: Hashable, function: Function, inputs: Sequence[Tensor]
    ) -> list[Any]:
        """The results of the function; inputs may be on the host."""
        captured = self._captured.get(key)
        is_known = self._num_runs[key] >= NUM_PLAIN_RUNS
        if captured is None and self._is_on and is_known:
            captured = self._new(key, function, inputs)
        if captured is not None:
            return captured.launch(inputs)
        self._note_run(key)
        return function(*(tensor.to(self._capture.device) for tensor in inputs))

    def _note_run(self, key: Hashable) -> None:
        """Count a plain run of this key; keys of long ago are forgotten."""
        self._num_runs[key] += 1
        while len(self._num_runs) > _NUM_NOTED:
            del self._num_runs[next(iter(self._num_runs))]

    def _new(
        self, key: Hashable, function: Function, inputs: Sequence[Tensor]
    ) -> _Captured | None:
        try:
            captured = self._captured_run(function, inputs)
        except RuntimeError as error:
            # After one failure no more attempts: each would run the function once in
            # vain.
            self._is_on = False
            self._on_failure(str(error).strip().splitlines()[0])
            return None
        while len(self._captured) >= _NUM_KEPT:
            del self._captured[next(iter(self._captured))]
        self._captured[key] = captured
        return captured

    def _captured_run(self, function: Function, inputs: Sequence[Tensor]) -> _Captured:
        capture, count = self._capture, self._num_copied
        if self._outbox is not None:
            return _CapturedWithOutbox(function, inputs, capture, count, self._outbox)
        return _Captured(function, inputs, capture, count)


class _Captured:
    """One captured graph with the memory of its inputs and results."""

    def __init__(
        self,
        function: Function,
        inputs: Sequence[Tensor],
        capture: Capture,
        num_copied: int,
    ) -> None:
        # It is not called again, but keeps the memory alive that the graph uses.
        self._function = function
        self._device = capture.device
        self._num_copied = num_copied
        self._inputs = [self._held(tensor, capture) for tensor in inputs]
        self._fills = [
            _choose_fill(held, given, capture)
            for held, given in zip(self._inputs, inputs, strict=True)
        ]
        self._replay, self._results = capture(self._call, self._inputs)

    def _held(self, tensor: Tensor, capture: Capture) -> Tensor:
        return tensor.to(capture.device, copy=True)

    def _call(self, *inputs: Tensor) -> list[Any]:
        return self._function(*inputs)

    def _fill(self, inputs: Sequence[Tensor]) -> None:
        for fill, held, given in zip(self._fills, self._inputs, inputs, strict=True):
            fill(held, given)

    def launch(self, inputs: Sequence[Tensor]) -> list[Any]:
        """Copy the inputs in, run, copy the outputs out."""
        self._fill(inputs)
        self._replay()
        copied = self._results[: self._num_copied]
        rest = self._results[self._num_copied :]
        return [r.clone() if isinstance(r, Tensor) else r for r in copied] + rest


class _CapturedWithOutbox(_Captured):
    """One captured graph that fetches small inputs from the host by itself.

    The host has seen the outputs of a launch before it begins the next one, and so has
    the graph done with its inputs by then.
    """

    def __init__(
        self,
        function: Function,
        inputs: Sequence[Tensor],
        capture: Capture,
        num_copied: int,
        outbox: Outbox,
    ) -> None:
        self._outbox = outbox
        super().__init__(function, inputs, capture, num_copied)

    def _held(self, tensor: Tensor, capture: Capture) -> Tensor:
        if tensor.device.type == "cpu" and tensor.nbytes <= SMALL:
            return capture.host_memory_like(tensor).copy_(tensor)
        return super()._held(tensor, capture)

    def _call(self, *inputs: Tensor) -> list[Any]:
        fetched = (tensor.to(self._device, non_blocking=True) for tensor in inputs)
        return self._function(*fetched)

    def launch(self, inputs: Sequence[Tensor]) -> list[Any]:
        """Copy the inputs in, run, take the outputs out of the outbox."""
        self._fill(inputs)
        self._replay()
        return self._outbox.receive() + self._results[self._num_copied :]


def _choose_fill(held: Tensor, given: Tensor, capture: Capture) -> Fill:
    """How an input like the given one gets to where a graph reads it."""
    crosses = given.is_cpu and not held.is_cpu
    return capture.early_fill(held) if crosses and held.nbytes > LARGE else _fill


def _fill(held: Tensor, given: Tensor) -> None:
    """Copy an input to where a graph reads it."""
    is_on_host = held.is_cpu and given.is_cpu and held.dtype == given.dtype
    if is_on_host and held.is_contiguous() and given.is_contiguous():
        # PyTorch shares a copy among threads and waits for the slowest to wake up,
        # which may take longer than the step.
        ctypes.memmove(held.data_ptr(), given.data_ptr(), given.nbytes)
        return
    # The driver reads ordinary memory before the call returns; pinned memory it would
    # read later, when the program may have written to it.
    held.copy_(given, non_blocking=not given.is_pinned())
