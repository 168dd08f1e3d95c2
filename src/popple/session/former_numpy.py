"""Names that NumPy once had, for programs that were written when it had them.

In: the installed NumPy, whatever its version. Out: `numpy.Inf`, `numpy.int` and their
like are found again by code of a program for the IPU. Libraries, which ask for names to
learn which NumPy there is, get the answer of the installed one.

NumPy 1.24 dropped its names for types of Python, 2.0 second names and spellings, 2.4
what 2.0 had deprecated (release notes of these versions).
"""

from __future__ import annotations

import builtins
import sys
import warnings
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from popple.session.packages import Packages

__all__ = ["serve_former_names"]

_OF_PYTHON = {
    **{name: name for name in ("bool", "complex", "float", "int", "object", "str")},
    "long": "int",
    "unicode": "str",
}
_RENAMED = {
    "Inf": "inf",
    "Infinity": "inf",
    "NAN": "nan",
    "NaN": "nan",
    "PINF": "inf",
    "alltrue": "all",
    "bool8": "bool_",
    "cfloat": "complex128",
    "complex_": "complex128",
    "cumproduct": "cumprod",
    "float_": "float64",
    "infty": "inf",
    "longcomplex": "clongdouble",
    "longfloat": "longdouble",
    "product": "prod",
    "round_": "round",
    "row_stack": "vstack",
    "singlecomplex": "complex64",
    "sometrue": "any",
    "string_": "bytes_",
    "trapz": "trapezoid",
    "unicode_": "str_",
}


def serve_former_names() -> None:
    """Let programs find former names in NumPy, now or when they import it."""
    import numpy as np

    stock = vars(np).get("__getattr__")
    if not isinstance(stock, _Lookup):
        setattr(np, "__getattr__", _Lookup(np, stock))  # noqa: B010  it is no name of it


class _Lookup:
    """How NumPy is asked for a name that it does not have."""

    def __init__(self, module: ModuleType, stock: Callable[[str], Any] | None) -> None:
        self._module = module
        self._stock = stock
        self._packages = Packages()

    def __call__(self, name: str) -> Any:
        known = name in _RENAMED or name in _OF_PYTHON
        # The frame that asks: nothing stands between, a module is asked by Python.
        frame: FrameType = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        asking = frame.f_code.co_filename
        if not known or self._packages.is_installed_file(asking):
            return self._ask_stock(name)
        if name in _RENAMED:
            meant, found = f"numpy.{_RENAMED[name]}", vars(self._module)[_RENAMED[name]]
        else:
            meant, found = _OF_PYTHON[name], getattr(builtins, _OF_PYTHON[name])
        text = f"numpy.{name} is gone from NumPy; this program gets {meant} for it"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return found

    def _ask_stock(self, name: str) -> Any:
        if self._stock is None:
            raise AttributeError(f"module 'numpy' has no attribute {name!r}")
        return self._stock(name)
