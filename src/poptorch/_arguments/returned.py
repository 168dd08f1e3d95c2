"""What a call returns: tensors in the device's types, without a history.

The backward pass of a training model is part of its call. A program that asks an
output for it is told so: torch itself would only say that there is no gradient.

`Tensor.backward` is replaced for that, with the first output of the process. A mark on
the outputs themselves would be a smaller change, but would not stay there: attributes
of a tensor are saved with it, and a file of predictions could no longer be read
without poptorch, nor with torch.load's weights_only; subclasses spread into whatever
is computed from outputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import torch

from .._errors import Error

__all__ = ["to_host"]

# The outputs that are still in use, by their ids.
_OUTPUTS: WeakValueDictionary[int, torch.Tensor] = WeakValueDictionary()


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """An output as the program gets it: int64 becomes int32, float64 float32."""
    tensor = tensor.cpu()
    if tensor.dtype is torch.int64:
        tensor = tensor.to(torch.int32)
    elif tensor.dtype is torch.float64:
        tensor = tensor.to(torch.float32)
    _watch_backward()
    _OUTPUTS[id(tensor)] = tensor
    return tensor


def _refusing(backward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(backward)
    def checked(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not self.requires_grad and _OUTPUTS.get(id(self)) is self:
            raise Error(
                "This tensor is the output of a PopTorch model and has no backward(): "
                "calling a poptorch.trainingModel runs the backward pass and the "
                "optimizer as well. An inferenceModel has neither; use a trainingModel."
            )
        return backward(self, *args, **kwargs)

    return checked


@functools.cache
def _watch_backward() -> None:
    torch.Tensor.backward = _refusing(torch.Tensor.backward)
