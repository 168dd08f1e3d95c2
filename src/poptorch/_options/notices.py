"""Says in the log that an option was set which has no effect."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._logging import logger
from .tables import BACKEND_NAMES, WITHOUT_EFFECT

__all__ = ["note_backend_name", "noting"]

# One table for the process: a program that sets options in a loop is told once.
_SAID: set[str] = set()


def _say(name: str, reason: str) -> None:
    if name not in _SAID:
        _SAID.add(name)
        logger.warning("Option %s has no effect: %s.", name, reason)


def note_backend_name(key: str) -> None:
    """Say that a name of PopART is not one that Popple follows, if it is not."""
    if key not in BACKEND_NAMES:
        _say(f"_Popart.set({key!r})", "the back end that knows it is not there")


def noting(owner: type, prefix: str = "") -> None:
    """Let the setters of a class that have no effect say so when they are called."""
    for attribute, member in list(vars(owner).items()):
        name = f"{prefix}{attribute}"
        # Deprecated ones have a warning of their own, which PopTorch gives too.
        if name in WITHOUT_EFFECT and "deprecated" not in WITHOUT_EFFECT[name]:
            setattr(owner, attribute, _noted(member, name))


def _noted(setter: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(setter)
    def noted(*args: Any, **kwargs: Any) -> Any:
        _say(name, WITHOUT_EFFECT[name])
        return setter(*args, **kwargs)

    return noted
