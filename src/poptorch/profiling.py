"""Trace points in the user's program, for a trace library if there is one.

PVTI_OPTIONS in the environment switches them on; without it, or without the library,
they cost nothing and do nothing.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

from ._logging import logger

__all__ = ["Channel"]

_LIBRARY = "libpvti"


@cache
def _find_library() -> Any:
    """The trace library, or None."""
    if "PVTI_OPTIONS" not in os.environ:
        return None
    try:
        return import_module(_LIBRARY)
    except ImportError as error:
        logger.info("Trace points are off: %s", error)
        return None


@cache
def _make_channel(name: str) -> Any:
    library = _find_library()
    return None if library is None else library.createTraceChannel(name)


class Channel:
    """A named source of trace points.

    >>> channel = Channel("loader")
    >>> with channel.tracepoint("decode"):
    ...     pass
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._channel = _make_channel(name)

    def instrument(self, obj: Any, *methods: str) -> Any:
        """Make every call of these methods a trace point; returns `obj`."""
        if self._channel is not None:
            _find_library().instrument(obj, methods, self._channel)
        return obj

    def tracepoint(self, name: str) -> AbstractContextManager[Any]:
        """A context that is one trace point."""
        if self._channel is None:
            return nullcontext()
        return _find_library().Tracepoint(self._channel, f"{self._name}.{name}")
