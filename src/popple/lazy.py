"""Modules that are imported when something of them is first used.

Most programs only run: what models their cost is not loaded until someone asks. A
module that uses others so names them twice, once for type checkers:

    if TYPE_CHECKING:
        from popple import plan
    else:
        plan = LazyModule("popple.plan")
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module until one of its names is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """The name in the module, which is imported now if it was not before."""
        return getattr(import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"<module {self._name!r}, imported when it is used>"
