"""Nested results and arguments as JSON: where tensors stand, and plain data.

    {"tensor": ["float32", [2, 3]]}       a tensor of this type and shape
    {"tuple": [...]}, [...], {"dict": [[key, value], ...]}
    {"named": ["module", "Class", [...]]} a named tuple
    null, true, 3, "text", {"f": "inf"}, {"torch": "float32"}

A named tuple is made again if its class is loaded already; nothing is imported because
a file says so. Without the class it is a plain tuple.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from popple.capture.torch.stored_values import (
    NotStorable,
    check,
    find_dtype,
    pack,
    unpack,
    whole_list,
)

MakeTensor = Callable[[torch.dtype, list[int]], Tensor]


def pack_structure(value: Any) -> Any:
    """A structure as JSON; NotStorable if it has an object of another kind."""
    if isinstance(value, Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return {"tensor": [dtype, list(value.shape)]}
    if type(value) is list:
        return [pack_structure(item) for item in value]
    if type(value) is tuple:
        return {"tuple": [pack_structure(item) for item in value]}
    if type(value) in (dict, OrderedDict):
        kind = "dict" if type(value) is dict else "ordered"
        pairs = [[_plain(k), pack_structure(item)] for k, item in value.items()]
        return {kind: pairs}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        cls = type(value)
        parts = [pack_structure(item) for item in value]
        return {"named": [cls.__module__, cls.__qualname__, parts]}
    return _plain(value)


def _plain(value: Any) -> Any:
    def refuse(_: Any) -> int:
        raise NotStorable("a structure has a node in it")

    packed = pack(value, refuse)
    if isinstance(packed, (list, tuple)):
        raise NotStorable(f"a structure has a {type(value).__name__} in it")
    return packed


def unpack_structure(data: Any, make_tensor: MakeTensor | None = None) -> Any:
    """The structure that JSON stands for; tensors are on the meta device by default."""
    make = make_tensor or _meta_tensor

    def each(items: Any) -> list[Any]:
        check(isinstance(items, list), "a structure is malformed")
        return [unpack_structure(item, make) for item in items]

    if isinstance(data, list):
        return each(data)
    if not isinstance(data, dict):
        return unpack(data)
    check(len(data) == 1, "a structure is malformed")
    ((kind, content),) = data.items()
    if kind == "tensor":
        name, shape = content
        return make(find_dtype(name), whole_list(shape))
    if kind == "tuple":
        return tuple(each(content))
    if kind in ("dict", "ordered"):
        pairs = [(unpack(key), unpack_structure(item, make)) for key, item in content]
        return dict(pairs) if kind == "dict" else OrderedDict(pairs)
    if kind == "named":
        module, name, parts = content
        return _named(module, name, each(parts))
    return unpack(data)


def _meta_tensor(dtype: torch.dtype, shape: list[int]) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def _named(module: Any, name: Any, parts: list[Any]) -> Any:
    """A named tuple of a class that the program has loaded, or a plain tuple."""
    found: Any = sys.modules.get(module) if isinstance(module, str) else None
    for part in str(name).split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    fields = getattr(found, "_fields", ())
    is_known = isinstance(found, type) and issubclass(found, tuple)
    # `tuple.__new__`, not the class: its constructor is the program's code.
    if is_known and len(fields) == len(parts):
        return tuple.__new__(found, parts)
    return tuple(parts)
