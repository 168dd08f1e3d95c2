"""Tensors as raw numbers with their type, shape and strides: no pickle.

pack_tensors     tensors by name --> rows of JSON, and buffers by name
unpack_tensors   the rows, and a function that gives a buffer --> tensors by name
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from popple.capture.torch.stored_values import (
    NotStorable,
    check,
    find_dtype,
    whole,
    whole_list,
)

_FOLDER = "tensors"


def pack_tensors(
    tensors: Mapping[str, Tensor], folder: str = _FOLDER
) -> tuple[list[Any], dict[str, memoryview]]:
    """Rows that describe the tensors, and their numbers as parts of a file.

    The numbers are not copied: tensors must stay as they are until they are written.
    """
    rows: list[Any] = []
    parts: dict[str, memoryview] = {}
    for index, (name, tensor) in enumerate(tensors.items()):
        part = f"{folder}/{index}"
        dtype = str(tensor.dtype).removeprefix("torch.")
        rows.append([name, dtype, list(tensor.shape), list(tensor.stride()), part])
        parts[part] = _numbers(name, tensor)
    return rows, parts


def _numbers(name: str, tensor: Tensor) -> memoryview:
    with torch._C.DisableTorchFunctionSubclass():
        plain = tensor.detach().cpu()
        if plain.layout is not torch.strided or plain.is_quantized:
            raise NotStorable(f"{name} is no dense tensor")
        plain = plain.resolve_conj().resolve_neg()
        span = _span(list(plain.shape), list(plain.stride()))
        flat = plain.as_strided((span,), (1,))
        numbers: Any = flat.view(torch.uint8).numpy()  # a buffer, as Python sees it
        return memoryview(numbers)


def _span(shape: list[int], stride: list[int]) -> int:
    """Elements from the first to the last, with what lies between them."""
    if 0 in shape:
        return 0
    return 1 + sum((s - 1) * t for s, t in zip(shape, stride, strict=True))


def unpack_tensors(rows: Any, part: Callable[[str], bytes]) -> dict[str, Tensor]:
    """The tensors that rows and parts describe; ValueError if they do not fit."""
    check(isinstance(rows, list), "tensors are no list")
    found: dict[str, Tensor] = {}
    for row in rows:
        check(isinstance(row, list) and len(row) == 5, "a tensor is malformed")
        name, dtype, shape, stride, where = row
        check(isinstance(name, str) and isinstance(where, str), "a tensor has no name")
        check(name not in found, f"{name} is there twice")
        found[name] = _tensor(dtype, whole_list(shape), whole_list(stride), part(where))
    return found


def _tensor(kind: Any, shape: list[int], stride: list[int], data: bytes) -> Tensor:
    dtype = find_dtype(kind)
    check(len(shape) == len(stride), "shape and strides differ")
    span = whole(_span(shape, stride))
    check(span * dtype.itemsize == len(data), "a tensor has another size")
    if not span:
        return torch.empty_strided(shape, stride, dtype=dtype)
    # A bytearray can be written to, as the memory of a tensor must be.
    return torch.frombuffer(bytearray(data), dtype=dtype).as_strided(shape, stride)
