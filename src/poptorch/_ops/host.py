"""`CPU`: a Python function that a compiled model calls on the host."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .._errors import Error
from .._tracing.trace import find_trace, untraced
from .checks import check_tensor
from .control import taken_branch

__all__ = ["CPU"]


class CPU:
    """A function that runs on the host in the middle of a compiled model.

    `layer_to_call` is given real tensors in every run. Compiling calls it once with
    zeros to learn what shapes it returns; they must always be the same. There is no
    gradient through it. On the CPU it is called like any function.
    """

    def __init__(self, layer_to_call: Callable[..., Any], ID: str) -> None:
        self._layer_to_call = layer_to_call
        self._ID = ID
        if isinstance(layer_to_call, torch.nn.Module):
            layer_to_call.requires_grad_(False)
        self.in_shapes: list[torch.Size] | None = None
        self.out_shapes: list[torch.Size] | None = None
        self.inputs: list[torch.Tensor] | None = None
        self.outputs: list[torch.Tensor] | None = None

    def execute(self) -> None:
        """Call the function on `inputs` and write what it returns to `outputs`."""
        if self.inputs is None or self.outputs is None:
            raise Error(f"The CPU op {self._ID} has not been called yet.")
        results = _listed(self._layer_to_call(*self.inputs))
        for place, result in zip(self.outputs, results, strict=True):
            place.copy_(result)

    def registerPersistentData(self) -> None:
        """Make `inputs` and `outputs`: zeros of the shapes of the last call."""
        if self.in_shapes is None or self.out_shapes is None:
            raise Error(f"The CPU op {self._ID} has not been called yet.")
        self.inputs = [torch.zeros(shape) for shape in self.in_shapes]
        self.outputs = [torch.zeros(shape) for shape in self.out_shapes]

    def __call__(self, *input: Any, **kwargs: Any) -> Any:
        """What the function returns: one tensor, or a list of several."""
        function = functools.partial(self._layer_to_call, **kwargs)
        trace = find_trace()
        if trace is None:
            returned = function(*input)
            self._remember(list(input), _listed(returned))
            return returned
        for tensor in input:
            check_tensor(tensor, f"An argument of the CPU op {self._ID}")
        with untraced(), torch.no_grad():
            returned = trace.run_outside(function, input)
        examples = _listed(returned)
        for example in examples:
            check_tensor(example, f"What the CPU op {self._ID} returns")
        self._remember(list(input), examples)
        checked = functools.partial(self._run, function, examples)
        types = tuple((example.shape, example.dtype) for example in examples)
        from popple.capture.torch import HostFunction

        host = HostFunction(checked, self._ID, types)
        results = host.call(input, taken_branch())
        return results if isinstance(returned, (list, tuple)) else results[0]

    def _run(
        self, function: Callable[..., Any], examples: list[Any], *inputs: torch.Tensor
    ) -> list[torch.Tensor]:
        """What the function returns in a run, which must be as when it was compiled."""
        results = _listed(function(*inputs))
        found = [tuple(result.shape) for result in results]
        wanted = [tuple(example.shape) for example in examples]
        if found != wanted:
            raise Error(
                f"The CPU op {self._ID} returned tensors of the shapes {found}, but "
                f"when the model was compiled they were {wanted}."
            )
        return results

    def _remember(self, inputs: list[Any], outputs: list[Any]) -> None:
        self.in_shapes = [tensor.shape for tensor in inputs]
        self.out_shapes = [tensor.shape for tensor in outputs]


def _listed(returned: Any) -> list[Any]:
    return list(returned) if isinstance(returned, (list, tuple)) else [returned]
