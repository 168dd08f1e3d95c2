"""Names and attributes for the ops of a part of the model.

They show in reports and in the modelled program; values do not depend on them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any

from popple.graph import Notes, sorted_labels

from .._errors import Error, check
from .._tracing.trace import find_trace

__all__ = ["Attribute", "NameScope"]

# Rows of the blocks of solvers: the one attribute that says how ops are planned.
_BLOCK_SIZE = "poplin.blockSize"


def _notes_of(attributes: dict[str, str]) -> Notes:
    """Attributes of a part of a model as notes on its ops."""
    labels = {name: text for name, text in attributes.items() if name != _BLOCK_SIZE}
    size = attributes.get(_BLOCK_SIZE)
    if size is not None and not size.isdecimal():
        raise Error(f"{_BLOCK_SIZE} must be a number of rows, not {size!r}.")
    return Notes(
        block_size=None if size is None else int(size), labels=sorted_labels(labels)
    )


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
        self._notes = _notes_of(
            {
                f"{group}.{key}": str(value)
                for group, pairs in kwargs.items()
                for key, value in pairs.items()
            }
        )
        self._entered: list[AbstractContextManager[None]] = []

    def __enter__(self) -> None:
        trace = find_trace()
        scope = nullcontext() if trace is None else trace.noted(self._notes)
        scope.__enter__()
        self._entered.append(scope)

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._entered.pop().__exit__(type, value, traceback)
