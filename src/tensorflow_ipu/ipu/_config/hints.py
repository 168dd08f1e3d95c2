"""Type hints of configuration attributes: how they read and what fits them.

Types are compared exactly, not by inheritance: True is no int here, because a flag
given for a count is always a mistake.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Iterable, Sequence
from typing import Any

_UNIONS = (typing.Union, types.UnionType)
_GENERIC_NAMES = {list: "typing.List", tuple: "typing.Tuple", dict: "typing.Dict"}


def render(hint: object) -> str:
    """The hint as users see it: `typing.Union[int, typing.List[int]]`."""
    if hint is Ellipsis:
        return "..."
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return getattr(hint, "__name__", str(hint))
    name = "typing.Union" if origin in _UNIONS else _GENERIC_NAMES[origin]
    inner = ", ".join(render(argument) for argument in arguments)
    return f"{name}[{inner}]" if inner else name


def fits(value: object, hint: object) -> bool:
    """Whether `value`, and what it contains, is of the hinted type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        return any(fits(value, argument) for argument in arguments)
    # Exactly: True is an int to isinstance, and a flag given for a count is a mistake.
    if type(value) is not (origin or hint):
        return False
    if not arguments:
        return True
    return _contents_fit(value, arguments)


def _contents_fit(value: Iterable[object], arguments: Sequence[Any]) -> bool:
    if isinstance(value, dict):
        keys, values = arguments
        return all(fits(k, keys) and fits(v, values) for k, v in value.items())
    if isinstance(value, tuple) and arguments[-1] is not Ellipsis:
        return len(value) == len(arguments) and all(map(fits, value, arguments))
    return all(fits(element, arguments[0]) for element in value)


def single_type(hint: object) -> type | None:
    """The class that values have; None if there is a choice of them."""
    origin = typing.get_origin(hint)
    return None if origin in _UNIONS else origin or hint


def check_readable(hint: object) -> None:
    """Refuse a hint whose values cannot be told apart once they are saved as text."""
    if typing.get_origin(hint) not in _UNIONS:
        return
    members = [m for m in typing.get_args(hint) if isinstance(m, type)]
    if int in members and any(issubclass(m, enum.Enum) for m in members):
        raise ValueError(
            f"An attribute cannot be {render(hint)}: you cannot have a Union of int "
            "and Enum, because enums are saved as integers. Choose one of them."
        )
