"""Results: what forward may return, and what a call gives to the program.

forward returns tensors in structures that can be taken apart. The backward pass of a
training model is part of its call; a program that asks an output for it is told so:
torch itself would only say that there is no gradient. `Tensor.backward` is replaced for
that, with the first output of the process. A mark on the outputs themselves would be a
smaller change, but would not stay there: attributes of a tensor are saved with it, and
a file of predictions could no longer be read without poptorch, nor with torch.load's
weights_only; subclasses spread into whatever is computed from outputs.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .._errors import Error
from .structure import find_parser, flatten_tensors

__all__ = ["output_tensors", "watch_backward"]

# The outputs that are still in use, by their ids.
_OUTPUTS: WeakValueDictionary[int, torch.Tensor] = WeakValueDictionary()


def output_tensors(structure: Any) -> list[torch.Tensor]:
    """The tensors in order; those the model has not computed are constants."""
    for item in _unknown_items(structure):
        _check_holds_no_tensor(item)
    tensors = flatten_tensors(structure)
    for tensor in tensors:
        _check_can_leave(tensor)
        if not isinstance(tensor, FakeTensor):
            warnings.warn(
                f"Output expected to be on the IPU but is on {tensor.device.type}: it "
                "is the same in every call.",
                stacklevel=2,
            )
    return tensors


def _check_can_leave(tensor: torch.Tensor) -> None:
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1:
        raise Error(
            f"forward returns a tensor of type {tensor.dtype}, which only exists on "
            "the IPU. Convert it before, for example with .half()."
        )


def _unknown_items(value: Any) -> Iterator[Any]:
    """Everything that is neither tensor nor structure of a known kind."""
    if isinstance(value, torch.Tensor) or find_parser(value) is not None:
        return
    if isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _unknown_items(item)
    else:
        yield value


def _check_holds_no_tensor(item: Any) -> None:
    for name, value in getattr(item, "__dict__", {}).items():
        if isinstance(value, FakeTensor):
            kind = type(item).__name__
            raise Error(
                f"forward returns a {kind} with a tensor in its attribute {name}, and "
                "there is no way to give it the tensors of a run. Return a tuple, list "
                "or dict, or teach poptorch the type with "
                f"poptorch.registerCustomArgParser({kind}, ...)."
            )


def watch_backward(tensors: Iterable[torch.Tensor]) -> None:
    """Remember the outputs of a call: they have no backward pass of their own."""
    _replace_backward()
    for tensor in tensors:
        _OUTPUTS[id(tensor)] = tensor


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
def _replace_backward() -> None:
    torch.Tensor.backward = _refusing(torch.Tensor.backward)
