"""Functions over a GPU's memory as CUDA graphs: captured once, then one launch each.

A graph reads its inputs from memory of its own and leaves its results there, where the
next launch overwrites them: inputs are copied in, and results that anyone keeps are
copied out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph

Function = Callable[..., list[Any]]
Capture = Callable[[Function, Sequence[Tensor]], tuple[Callable[[], None], list[Any]]]
"""Makes what runs a function on given inputs again, and tells where its results are."""

NUM_PLAIN_RUNS = 2
"""Libraries choose and allocate in their first runs, which cannot be captured."""

_NUM_KEPT = 8
_ON_HOST = frozenset({"popple.host_call.default", "popple.print_tensor.default"})


def host_operators(graph: Graph) -> tuple[str, ...]:
    """Operators that need the host, where a CUDA graph cannot go."""
    found = {
        str(node.target)
        for node in graph.nodes
        if node.op == "call_function"
        and (str(node.target) in _ON_HOST or _is_on_host(node.meta.get("val")))
    }
    return tuple(sorted(found))


def _is_on_host(value: object) -> bool:
    return isinstance(value, Tensor) and value.device.type == "cpu"


class GpuCapture:
    """Captures functions over a GPU's memory; all graphs share one pool of memory.

    They may, since nothing in it outlives a run.
    """

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(
        self, function: Function, inputs: Sequence[Tensor]
    ) -> tuple[Callable[[], None], list[Any]]:
        """What runs the function on these inputs again, and where its results are."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            results = function(*inputs)
        return graph.replay, results


class CudaGraphs:
    """Runs functions, each captured under a key once the first runs are over.

    A function's memory besides its inputs must stay where it is. The first
    `num_copied` results are copies; others are good until the next run. If capturing
    fails, `on_failure` is told why and functions run as they are from then on.
    """

    def __init__(
        self,
        num_copied: int,
        on_failure: Callable[[str], None],
        capture: Capture,
        device: str = "cuda",
    ) -> None:
        self._num_copied = num_copied
        self._on_failure = on_failure
        self._capture = capture
        self._device = device
        self._num_runs = 0
        self._is_on = True
        self._captured: dict[Hashable, _Captured] = {}

    def run(
        self, key: Hashable, function: Function, inputs: Sequence[Tensor]
    ) -> list[Any]:
        """The results of the function; inputs may be on the host."""
        captured = self._captured.get(key)
        if captured is None and self._is_on and self._num_runs >= NUM_PLAIN_RUNS:
            captured = self._new(key, function, inputs)
        if captured is not None:
            return captured.launch(inputs, self._num_copied)
        self._num_runs += 1
        return function(*(tensor.to(self._device) for tensor in inputs))

    def _new(
        self, key: Hashable, function: Function, inputs: Sequence[Tensor]
    ) -> _Captured | None:
        held = [tensor.to(self._device, copy=True) for tensor in inputs]
        try:
            captured = _Captured(function, held, *self._capture(function, held))
        except RuntimeError as error:
            self._is_on = False
            self._on_failure(str(error).strip().splitlines()[0])
            return None
        while len(self._captured) >= _NUM_KEPT:
            del self._captured[next(iter(self._captured))]
        self._captured[key] = captured
        return captured


@dataclass(frozen=True)
class _Captured:
    """One captured graph with the memory of its inputs and results.

    The function is not called again; it keeps the memory alive that the graph uses.
    """

    function: Function
    inputs: list[Tensor]
    replay: Callable[[], None]
    results: list[Any]

    def launch(self, inputs: Sequence[Tensor], num_copied: int) -> list[Any]:
        """Copy the inputs in, run, copy the outputs out."""
        for held, given in zip(self.inputs, inputs, strict=True):
            # The driver reads ordinary memory before the call returns; pinned memory
            # it would read later, when the program may have written to it.
            held.copy_(given, non_blocking=not given.is_pinned())
        self.replay()
        outputs, others = self.results[:num_copied], self.results[num_copied:]
        return [o.clone() if isinstance(o, Tensor) else o for o in outputs] + others
