"""Trace points around functions and methods that exist already."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from libpvti._channels import TraceChannel
from libpvti._points import Tracepoint
from libpvti._tracing import TRACING

__all__ = ["instrument", "instrument_fn"]

P = ParamSpec("P")
R = TypeVar("R")


def instrument_fn(
    channel: TraceChannel,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: every call of the function is an event of the channel.

    Where the process is not traced the function is left as it is.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if not TRACING.is_on:
            return function
        label = getattr(function, "__qualname__", repr(function))

        @functools.wraps(function)
        def traced(*args: P.args, **kwargs: P.kwargs) -> R:
            with Tracepoint(channel, label):
                return function(*args, **kwargs)

        return traced

    return decorate


def instrument(obj: Any, methods: Iterable[str], channel: TraceChannel) -> None:
    """Make every call of these methods of `obj` an event of the channel."""
    if not TRACING.is_on:
        return
    names = list(methods)
    if not isinstance(obj, type | ModuleType):
        special = [name for name in names if _is_special(name)]
        names = [name for name in names if name not in special]
        if special:
            _instrument_special(obj, special, channel)
    for name in names:
        method = getattr(obj, name)
        if isinstance(obj, type):
            setattr(obj, name, instrument_fn(channel)(method))
        else:
            label = getattr(method, "__qualname__", name)
            # Unlike a closure, a partial of a function of this module can be pickled.
            setattr(obj, name, functools.partial(_call, channel, label, method))


def _call(
    channel: TraceChannel,
    label: str,
    function: Callable[..., R],
    *args: Any,
    **kwargs: Any,
) -> R:
    with Tracepoint(channel, label):
        return function(*args, **kwargs)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _instrument_special(obj: Any, names: Iterable[str], channel: TraceChannel) -> None:
    """Python looks up `__getitem__` and its like on the class: give `obj` its own."""
    cls = type(obj)
    traced = {name: instrument_fn(channel)(getattr(cls, name)) for name in names}
    own = type(cls.__name__, (cls,), {**traced, "__module__": cls.__module__})
    obj.__class__ = own
