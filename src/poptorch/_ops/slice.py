"""Slices that begin where a tensor says, and so somewhere else in every run."""

from __future__ import annotations

from typing import Any

import torch

from .._errors import Error
from .._tracing.trace import isRunningOnIpu
from .checks import check_tensor

__all__ = ["dynamic_slice", "dynamic_update"]

_DEVICE_TYPES = {torch.int64: torch.int32, torch.float64: torch.float32}


def dynamic_slice(
    tensor: torch.Tensor, dim: int, start: torch.Tensor, size: int, step: int
) -> torch.Tensor:
    """`tensor[start : start + size : step]` along dimension `dim`.

    In a compiled model `size` must divide the dimension, and indices past its end
    begin again at 0.
    """
    check_tensor(tensor, "The first argument of dynamic_slice")
    _check_start(start)
    _check_int(dim, "dim")
    _check_int(size, "size")
    _check_int(step, "step")
    if not isRunningOnIpu():
        begin = int(start)
        return torch.ops.aten.slice.Tensor(tensor, dim, begin, begin + size, step)
    _check_size(size)
    if step < 1:
        raise Error(f"The step of a slice must be at least 1, not {step}.")
    length = tensor.shape[dim]
    if length % size:
        raise Error(
            f"The size of the slice ({size}) must be a factor of the slicing dimension "
            f"({length})."
        )
    return tensor.index_select(dim, _indices(length, start, size, step))


def dynamic_update(
    input: torch.Tensor, src: torch.Tensor, dim: int, start: torch.Tensor, size: int
) -> torch.Tensor:
    """A copy of `input` with `src` in place of `[start : start + size]` along `dim`.

    In a compiled model indices past the end of the dimension begin again at 0.
    """
    check_tensor(input, "The first argument of dynamic_update")
    check_tensor(src, "The second argument of dynamic_update")
    _check_start(start)
    _check_int(dim, "dim")
    _check_int(size, "size")
    _check_alike(input, src)
    if not isRunningOnIpu():
        begin = int(start)
        return torch.slice_scatter(input, src, dim, begin, begin + size)
    _check_size(size)
    if src.shape[dim] != size:
        raise Error(
            f"src has {src.shape[dim]} elements along dimension {dim}, but the slice "
            f"it replaces has {size}."
        )
    indices = _indices(input.shape[dim], start, size, 1)
    return input.index_copy(dim, indices, src.to(input.dtype))


def _indices(length: int, start: torch.Tensor, size: int, step: int) -> torch.Tensor:
    places = torch.arange(0, size, step, device=start.device)
    return (start.reshape(1).to(torch.int64) + places) % length


def _check_start(start: Any) -> None:
    check_tensor(start, "The start of a dynamic slice")
    is_integer = not (start.is_floating_point() or start.dtype is torch.bool)
    if not is_integer or start.numel() != 1:
        raise Error(
            "The start of a dynamic slice must be one integer, not "
            f"{start.numel()} elements of {start.dtype}."
        )


def _check_int(value: Any, name: str) -> None:
    if not isinstance(value, int):
        raise Error(
            f"The {name} of a dynamic slice must be an int, not "
            f"{type(value).__name__}: shapes are fixed when the model is compiled."
        )


def _check_size(size: int) -> None:
    if size == 0:
        raise Error("The start and end of a slice must be different.")
    if size < 0:
        raise Error(
            "Taking a slice of a tensor with the end less than the start is not "
            "supported."
        )


def _check_alike(input: torch.Tensor, src: torch.Tensor) -> None:
    if input.dim() != src.dim():
        raise Error(
            "input and src tensors must have same dimensionality. "
            f"({input.dim()}) vs ({src.dim()})"
        )
    types = [_DEVICE_TYPES.get(t.dtype, t.dtype) for t in (input, src)]
    if types[0] != types[1]:
        raise Error(
            f"input and src tensor must have same dtype. ({types[0]} vs {types[1]})"
        )
