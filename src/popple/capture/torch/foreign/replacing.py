"""What replaces the operators of compiled libraries while a step is traced.

Outside a trace the libraries work as they always do. Inside one, torch_geometric finds
pyg-lib's operators on points and splines even if pyg-lib is not installed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from popple.capture.torch.foreign import points, scatter, splines

Operators = Mapping[str, Callable[..., Any]]

_PYG_SCHEMAS: Operators = points.PYG_SCHEMAS | splines.PYG_SCHEMAS


def _name(schema: str) -> str:
    return schema.split("(")[0]


_PYG_DOUBLES: Operators = {_name(s): double for s, double in _PYG_SCHEMAS.items()}

# The module whose import registers the operators of a namespace, and their doubles.
_DOUBLES: Mapping[tuple[str, str], Operators] = {
    ("torch_scatter", "torch_scatter"): scatter.OPERATORS,
    ("torch_cluster", "torch_cluster"): points.TORCH_CLUSTER,
    ("torch_spline_conv", "torch_spline_conv"): splines.OPERATORS,
    ("pyg_lib", "pyg"): _PYG_DOUBLES,
}

# Before autograd, so that the doubles are differentiated like any other operator;
# none of the libraries registers anything for these keys.
_KEYS = ("AutogradCPU", "AutogradCUDA")


@contextmanager
def plain_operators() -> Iterator[None]:
    """Answer the operators of the libraries that are imported with plain ones."""
    with ExitStack() as stack:
        for (module, namespace), doubles in _DOUBLES.items():
            if module in sys.modules:
                library = _library(stack, namespace, "IMPL")
                _replace(library, getattr(torch.ops, namespace), doubles)
        if "torch_geometric" in sys.modules and "pyg_lib" not in sys.modules:
            _provide_pyg(_library(stack, "pyg", "FRAGMENT"))
        yield


def _library(stack: ExitStack, namespace: str, kind: str) -> Any:
    return stack.enter_context(torch.library._scoped_library(namespace, kind))


def _replace(library: Any, operators: Any, doubles: Operators) -> None:
    for name, double in doubles.items():
        if hasattr(operators, name):
            for key in _KEYS:
                library.impl(name, double, key)


def _provide_pyg(library: Any) -> None:
    """Define pyg-lib's operators; those that somebody defined in its place answer."""
    _replace(library, torch.ops.pyg, _PYG_DOUBLES)
    for schema, operator in _PYG_SCHEMAS.items():
        if not hasattr(torch.ops.pyg, _name(schema)):
            library.define(schema)
            library.impl(_name(schema), operator, "CompositeImplicitAutograd")
