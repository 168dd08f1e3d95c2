"""`tf.contrib.opt`: optimisers."""

from __future__ import annotations

from typing import Any

from .. import absent as _absent
from .lars_optimizer import LARSOptimizer

__all__ = ["LARSOptimizer"]


def __getattr__(name: str) -> Any:
    raise _absent(f"opt.{name}")
