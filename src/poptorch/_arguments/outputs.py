"""What forward may return: tensors in structures that can be taken apart."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .._errors import Error
from .structure import find_parser, flatten_tensors

__all__ = ["output_tensors"]


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
