"""Functions of the user's that run before and after every compilation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.utils.hooks import RemovableHandle

__all__ = ["compile_hooks", "registerPostCompileHook", "registerPreCompileHook"]

Hook = Callable[[], Any]

# The interface registers hooks for the whole process, so there is one table each.
_BEFORE: OrderedDict[int, Hook] = OrderedDict()
_AFTER: OrderedDict[int, Hook] = OrderedDict()


def registerPreCompileHook(hook: Hook) -> RemovableHandle:
    """Call `hook()` before a model is traced; the handle removes it."""
    return _register(hook, _BEFORE)


def registerPostCompileHook(hook: Hook) -> RemovableHandle:
    """Call `hook()` after a model was traced, also when that failed."""
    return _register(hook, _AFTER)


def _register(hook: Hook, table: OrderedDict[int, Hook]) -> RemovableHandle:
    if not callable(hook):
        raise RuntimeError(f"A compile hook must be callable, but got {hook!r}.")
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


@contextmanager
def compile_hooks() -> Iterator[None]:
    """Run the hooks around what is inside."""
    for hook in list(_BEFORE.values()):
        hook()
    try:
        yield
    finally:
        for hook in list(_AFTER.values()):
            hook()
