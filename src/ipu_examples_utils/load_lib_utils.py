"""`load_lib`: custom operators and patterns in C++, which are not compiled here."""

from __future__ import annotations

import logging
from pathlib import Path

__all__ = ["load_lib"]

_LOG = logging.getLogger(__name__)


def load_lib(filepath: str, timeout: int = 0) -> None:
    """Say that a C++ file is not compiled.

    What examples load are mostly patterns that work round the original's compiler, so
    this is no error: one that uses an operator of such a file fails where it does.
    """
    path = Path(filepath)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {filepath!r}.")
    _LOG.warning("%s is not compiled: there is no Poplar compiler.", path.name)
