"""Queues as releases before 2.4 made them: with a name, and in another order.

In: the arguments of a queue's constructor in whichever order. Out: those of today. A
text where today's order has none marks the old one.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_ipu._former_arguments import FORMER_ARGUMENTS, IGNORED

__all__ = ["IN_ORDER", "OUT_ORDER", "with_former_order"]

NAME = "feed_name"
# What followed the name, and, in an outfeed, what followed it before and since 2.0.
IN_ORDER = ("device_ordinal", "replication_factor", "data_to_prefetch")
OUT_ORDER = ("outfeed_mode", "device_ordinal", "replication_factor", "io_batch_size")
_OUT_ORDER_1 = ("outfeed_mode", "outfeed_all", *OUT_ORDER[1:])
_PREFETCH = "prefetch_depth"  # came last, and is there today
# What they set follows from the program today.
_UNUSED = (NAME, "replication_factor", "data_to_prefetch", "io_batch_size")

Constructor = Callable[..., None]


def _as_it_is(kwargs: dict[str, Any]) -> None:
    del kwargs


def with_former_order(
    place: int,
    order: Sequence[str],
    read: Callable[[dict[str, Any]], None] = _as_it_is,
) -> Callable[[Constructor], Constructor]:
    """Let a constructor be called as of old: its name came at `place`, then `order`.

    `read` makes arguments of today of others than those without effect.
    """

    def decorate(constructor: Constructor) -> Constructor:
        owner = constructor.__qualname__.removesuffix(".__init__")
        FORMER_ARGUMENTS[f"{constructor.__module__}.{owner}"] = {
            **dict.fromkeys(_UNUSED, IGNORED),
            "outfeed_all": "outfeed_mode",
        }

        @functools.wraps(constructor)
        def init(self, *args: Any, **kwargs: Any) -> None:
            if len(args) > place and isinstance(args[place], str):
                after = args[place + 1 :]
                named = zip(_order(order, after), after, strict=False)
                kwargs = {**dict(named), **kwargs}
                args, kwargs[NAME] = args[:place], args[place]
            read(kwargs)
            _warn_of_unused(type(self).__name__, kwargs)
            constructor(self, *args, **kwargs)

        return init

    return decorate


def _order(order: Sequence[str], after: Sequence[Any]) -> tuple[str, ...]:
    # A device has a number, and True is none.
    is_first = order is OUT_ORDER and len(after) > 1 and type(after[1]) is not int
    return (*(_OUT_ORDER_1 if is_first else order), _PREFETCH)


def _warn_of_unused(owner: str, kwargs: dict[str, Any]) -> None:
    for name in kwargs.keys() & set(_UNUSED):
        del kwargs[name]
        warnings.warn(
            f"{owner}: `{name}` is an argument of older releases and has no effect;"
            " remove it.",
            DeprecationWarning,
            stacklevel=3,
        )
