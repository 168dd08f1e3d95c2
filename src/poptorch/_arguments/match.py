"""Whether a later call's arguments fit the ones a model was compiled for.

Structure, types, shapes and constants are compiled in, so all must be the same;
the error names the first place where they are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._errors import Error
from .structure import find_parser, flatten_tensors

__all__ = ["check_same", "mismatch"]

_REMEDY = (
    "The inputs do not match those the model was compiled for. Pass inputs of the same "
    "structure, or call destroy() on the model (or wrap it again) to compile it anew."
)


def mismatch(what: str) -> Error:
    """The error for arguments that differ as `what` says."""
    return Error(f"{what}.\n{_REMEDY}")


def check_same(name: str, mine: Any, other: Any, is_named: bool = False) -> None:
    """Error unless `other` is like `mine`, which is called `name`.

    `is_named`: the dict holds keyword arguments, which go by their own names.
    """
    if isinstance(mine, torch.Tensor) and isinstance(other, torch.Tensor):
        _check_tensor(name, mine, other)
        return
    _compare(name, "Type", type(mine), type(other))
    if find_parser(mine) is not None:
        _check_items(name, flatten_tensors(mine), flatten_tensors(other))
    elif isinstance(mine, (tuple, list)):
        _check_items(name, mine, other)
    elif isinstance(mine, dict):
        _check_dict(name, mine, other, is_named)
    elif not _is_same_constant(mine, other):
        raise mismatch(f"Value mismatch for {name}: expected {mine} but got {other}")


def _compare(name: str, what: str, expected: Any, got: Any) -> None:
    if expected != got:
        raise mismatch(f"{what} mismatch for {name}: expected {expected} but got {got}")


def _check_tensor(name: str, mine: torch.Tensor, other: torch.Tensor) -> None:
    _compare(name, "Data type", mine.dtype, other.dtype)
    _compare(name, "Shape", mine.shape, other.shape)


def _check_items(name: str, mine: Sequence[Any], other: Sequence[Any]) -> None:
    if len(mine) != len(other):
        raise mismatch(
            f"Length mismatch for {name}: expected {len(mine)} elements but got "
            f"{len(other)}"
        )
    for index, (item, later) in enumerate(zip(mine, other, strict=True)):
        check_same(f"{name}[{index}]", item, later)


def _check_dict(
    name: str, mine: dict[Any, Any], other: dict[Any, Any], is_named: bool
) -> None:
    details = _key_list("Unexpected", other.keys() - mine.keys())
    details += _key_list("Missing", mine.keys() - other.keys())
    if details:
        raise mismatch(f"Keys mismatch for {name}: {'. '.join(details)}")
    for key, value in mine.items():
        check_same(str(key) if is_named else f"{name}[{key}]", value, other[key])


def _key_list(what: str, keys: set[Any]) -> list[str]:
    names = ", ".join(sorted(str(key) for key in keys))
    return [f"{what} arguments: {names}"] if names else []


def _is_same_constant(mine: Any, other: Any) -> bool:
    if mine is other:
        return True
    equal = mine == other
    # Arrays compare element by element.
    return bool(equal.all()) if hasattr(equal, "all") else bool(equal)
