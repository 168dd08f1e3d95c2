"""Packages that extend poptorch for another library, loaded once that is in use.

A program that has imported torch_geometric, or one of the libraries that it builds on,
gets what poptorch_geometric adds: graphs can be passed to models, and operators are
traced with fixed shapes. A program that has not pays nothing. Extensions register what
they add here, with `registerCustomArgParser` and with the front end that traces;
poptorch knows them by name only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .._logging import logger

__all__ = [
    "extended_tracing",
    "load_extension_of",
    "registerGeometricCustomArgParsers",
    "register_tracing_context",
]

_EXTENSIONS = {
    "torch_geometric": "poptorch_geometric",
    "torch_scatter": "poptorch_geometric",
    "torch_cluster": "poptorch_geometric",
    "torch_spline_conv": "poptorch_geometric",
    "pyg_lib": "poptorch_geometric",
}

TracingContext = Callable[[], AbstractContextManager[Any]]

# Extensions add to poptorch for the whole process, so there is one table.
_CONTEXTS: dict[str, TracingContext] = {}


def register_tracing_context(name: str, context: TracingContext) -> None:
    """Trace every model inside a context that `context()` makes."""
    _CONTEXTS[name] = context


@contextmanager
def extended_tracing() -> Iterator[None]:
    """What the extensions of all libraries in use do while a model is traced."""
    for library in _EXTENSIONS:
        if library in sys.modules:
            _load(library)
    with ExitStack() as stack:
        for context in list(_CONTEXTS.values()):
            stack.enter_context(context())
        yield


def load_extension_of(kind: type) -> None:
    """Load the extension for the library that `kind` or a base of it is from."""
    libraries = {base.__module__.partition(".")[0] for base in kind.__mro__}
    for library in libraries & _EXTENSIONS.keys():
        _load(library)


def registerGeometricCustomArgParsers() -> None:
    """Let models take graphs of torch_geometric; they do so by themselves too."""
    if find_spec("torch_geometric") is not None:
        _load("torch_geometric")


def _load(library: str) -> None:
    try:
        import_module(_EXTENSIONS[library])
    except ImportError as error:
        logger.warning("%s is in use but not supported here: %s", library, error)
