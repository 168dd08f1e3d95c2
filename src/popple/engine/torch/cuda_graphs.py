"""Functions over a GPU's memory as CUDA graphs: captured once, then one launch each.

A graph reads its inputs from memory of its own and leaves its results there, where the
next launch overwrites them: inputs are copied in, and results that anyone keeps are
copied out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph

Function = Callable[..., list[Any]]

_NUM_PLAIN_RUNS = 2  # libraries choose and allocate in their first runs
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


class CudaGraphs:
    """Runs functions, each captured under a key once the first runs are over.

    A function's memory besides its inputs must stay where it is. The first
    `num_outputs` results are copies; others are good until the next run. If capturing
    fails, `on_failure` is told why and functions run as they are from then on.
    """

    def __init__(self, num_outputs: int, on_failure: Callable[[str], None]) -> None:
        self._num_outputs = num_outputs
        self._on_failure = on_failure
        self._num_runs = 0
        self._is_on = True
        # Nothing in it outlives a run, so all graphs can share one pool of memory.
        self._pool = torch.cuda.graph_pool_handle()
        self._captured: dict[Hashable, _Captured] = {}

    def run(
        self, key: Hashable, function: Function, inputs: Sequence[Tensor]
    ) -> list[Any]:
        """The results of the function; inputs may be on the host."""
        captured = self._captured.get(key)
        if captured is None and self._is_on and self._num_runs >= _NUM_PLAIN_RUNS:
            captured = self._capture(key, function, inputs)
        if captured is not None:
            return captured.launch(inputs)
        self._num_runs += 1
        return function(*(tensor.cuda() for tensor in inputs))

    def _capture(
        self, key: Hashable, function: Function, inputs: Sequence[Tensor]
    ) -> _Captured | None:
        try:
            captured = _Captured(function, inputs, self._num_outputs, self._pool)
        except RuntimeError as error:
            self._is_on = False
            self._on_failure(str(error).strip().splitlines()[0])
            return None
        while len(self._captured) >= _NUM_KEPT:
            del self._captured[next(iter(self._captured))]
        self._captured[key] = captured
        return captured


class _Captured:
    """One captured graph with the memory of its inputs and results."""

    def __init__(
        self, function: Function, inputs: Sequence[Tensor], num_outputs: int, pool: Any
    ) -> None:
        self._num_outputs = num_outputs
        self._inputs = [tensor.to("cuda", copy=True) for tensor in inputs]
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=pool):
            self._results = function(*self._inputs)

    def launch(self, inputs: Sequence[Tensor]) -> list[Any]:
        """Copy the inputs in, run, copy the outputs out."""
        for held, given in zip(self._inputs, inputs, strict=True):
            # The driver reads ordinary memory before the call returns; memory that it
            # reads later could have changed by then.
            held.copy_(given, non_blocking=not given.is_pinned())
        self._graph.replay()
        outputs = self._results[: self._num_outputs]
        copies = [o.clone() if isinstance(o, Tensor) else o for o in outputs]
        return copies + self._results[self._num_outputs :]
