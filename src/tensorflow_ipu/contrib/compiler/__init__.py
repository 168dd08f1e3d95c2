"""`tf.contrib.compiler`: programs compiled as a whole."""

from __future__ import annotations

import importlib
from typing import Any

from .. import absent as _absent

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name != "xla":
        raise _absent(f"compiler.{name}")
    return importlib.import_module(f"{__name__}.{name}")
