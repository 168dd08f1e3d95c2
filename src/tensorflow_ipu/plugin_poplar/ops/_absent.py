"""Raw operators that are not there, and what to use instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn


def explain(module: str, instead: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a module; `instead` says what does the work of a name."""

    def refuse(name: str) -> NoReturn:
        short = module.rpartition(".")[2]
        advice = instead.get(name) or instead.get("")
        use = f" Use tensorflow.python.ipu.{advice}." if advice else ""
        raise AttributeError(f"There is no raw operator {short}.{name}.{use}")

    return refuse
