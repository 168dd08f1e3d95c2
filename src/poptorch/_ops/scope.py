"""Names and attributes for the ops of a part of the model.

They show in reports and in the modelled program; values do not depend on them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any

from .._errors import check
from .._tracing.trace import find_trace

__all__ = ["Attribute", "NameScope"]


class NameScope:
    """`with NameScope("encoder"):` names of ops made inside begin with that."""

    def __init__(self, name: str) -> None:
        check(isinstance(name, str), "The name of a NameScope must be a string.")
        self.name = name
        self._entered: list[AbstractContextManager[None]] = []

    def __enter__(self) -> None:
        trace = find_trace()
        scope = nullcontext() if trace is None else trace.scope(self.name)
        scope.__enter__()
        self._entered.append(scope)

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._entered.pop().__exit__(type, value, traceback)


class Attribute:
    """`with Attribute(group={"key": "text"}):` ops made inside carry attributes.

    Equal ops with unequal attributes are not shared between layers.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._attrs = {
            f"{group}.{key}": str(value)
            for group, pairs in kwargs.items()
            for key, value in pairs.items()
        }
        self._entered: list[AbstractContextManager[None]] = []

    def __enter__(self) -> None:
        trace = find_trace()
        scope = nullcontext() if trace is None else trace.attributes(self._attrs)
        scope.__enter__()
        self._entered.append(scope)

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._entered.pop().__exit__(type, value, traceback)
