"""`tf.contrib.compiler.xla`: it compiled for whatever device its scope named."""

from __future__ import annotations

from typing import Any

from tensorflow.python.ipu import ipu_compiler

from .. import absent as _absent

__all__ = ["compile"]

compile = ipu_compiler.compile


def __getattr__(name: str) -> Any:
    raise _absent(f"compiler.xla.{name}")
