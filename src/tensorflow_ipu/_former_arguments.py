"""Arguments that releases before SDK 3.4 had: taken under their new name, or ignored.

`with_former` is a decorator. It leaves the signature of today as it is and takes
keywords of the past besides, with a line in TensorFlow's log for each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from tensorflow_ipu import _notices

__all__ = ["FORMER_ARGUMENTS", "IGNORED", "refused", "with_former"]

F = TypeVar("F", bound=Callable[..., Any])

IGNORED = ""
"""The new name of an argument that has none: it says nothing that is not known."""

_REFUSED = "!"


def refused(instead: str) -> str:
    """In place of a new name: the argument is refused, with what to do instead."""
    return _REFUSED + instead


# Every function that takes such arguments, by name -> argument -> its new name.
FORMER_ARGUMENTS: dict[str, dict[str, str]] = {}

_SAID: set[tuple[str, str]] = set()


def with_former(**former: str) -> Callable[[F], F]:
    """Take these keywords too, each with its name of today or what becomes of it."""

    def decorate(function: F) -> F:
        name = f"{function.__module__}.{function.__qualname__.removesuffix('.__new__')}"
        FORMER_ARGUMENTS[name.removesuffix(".__init__")] = former

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old in former.keys() & kwargs.keys():
                _translate(function.__qualname__, old, former[old], kwargs)
            return function(*args, **kwargs)

        return call  # pyright: ignore[reportReturnType]

    return decorate


def _translate(owner: str, old: str, new: str, kwargs: dict[str, Any]) -> None:
    if new.startswith(_REFUSED):
        raise TypeError(
            f"The argument `{old}` of {owner} went before SDK 3.4: {new[1:]}."
        )
    value = kwargs.pop(old)
    if new and kwargs.get(new) is not None:
        raise ValueError(f"{owner} is given both `{new}` and `{old}`, its former name.")
    if new:
        kwargs[new] = value
    if (owner, old) in _SAID:
        return
    _SAID.add((owner, old))
    today = f"is called `{new}` today" if new else "has no effect: leave it out"
    _notices.warn(f"the argument `{old}` of {owner} {today}.")
