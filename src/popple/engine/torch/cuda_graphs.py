"""A step captured once as a CUDA graph and launched as a whole from then on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

_NUM_WARM_UPS = 2  # libraries choose and allocate at their first calls


class CudaGraph:
    """A function over tensors on the GPU that becomes one launch.

    The first `num_fixed` arguments keep their memory; a set of fixed arguments seen for
    the first time (a replica's buffers, say) gets a graph of its own. The others are
    copied into the graph's inputs. Results are copied out, since the next launch
    overwrites them.
    """

    def __init__(self, function: Callable[..., Sequence[Any]], num_fixed: int) -> None:
        self._function = function
        self._num_fixed = num_fixed
        self._captured: dict[tuple[int, ...], _Captured] = {}

    def __call__(self, *arguments: Tensor) -> list[Any]:
        """Run once; the first run with these fixed arguments captures."""
        fixed, inputs = arguments[: self._num_fixed], arguments[self._num_fixed :]
        key = tuple(tensor.data_ptr() for tensor in fixed)
        if key not in self._captured:
            self._captured[key] = _Captured(self._function, fixed, inputs)
        return self._captured[key].launch(inputs)


class _Captured:
    """One captured graph with its input and output memory."""

    def __init__(
        self,
        function: Callable[..., Sequence[Any]],
        fixed: Sequence[Tensor],
        inputs: Sequence[Tensor],
    ) -> None:
        self._inputs = [tensor.clone() for tensor in inputs]
        saved = [tensor.clone() for tensor in fixed]
        random_state = torch.cuda.get_rng_state()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_NUM_WARM_UPS):
                function(*fixed, *self._inputs)
        torch.cuda.current_stream().wait_stream(stream)
        # Warming up ran the step: put back what it overwrote and drew.
        torch._foreach_copy_(list(fixed), saved)
        torch.cuda.set_rng_state(random_state)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._outputs = list(function(*fixed, *self._inputs))

    def launch(self, inputs: Sequence[Tensor]) -> list[Any]:
        """Copy the inputs in, run, copy the results out."""
        if self._inputs:
            torch._foreach_copy_(self._inputs, list(inputs))
        self._graph.replay()
        return [o.clone() if isinstance(o, Tensor) else o for o in self._outputs]
