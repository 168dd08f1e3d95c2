"""The operations of `tensorflow.python.ipu`, one module per subject.

Modules are loaded when they are first asked for.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType


def _names() -> list[str]:
    here = Path(__file__).parent
    found = [*here.glob("[!_]*.py"), *here.glob("[!_]*/__init__.py")]
    return sorted(p.stem if p.stem != "__init__" else p.parent.name for p in found)


def __getattr__(name: str) -> ModuleType:
    if name not in _names():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return _names()
