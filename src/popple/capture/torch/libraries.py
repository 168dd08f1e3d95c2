"""Plain torch doubles of compiled libraries' operators (torch_scatter), for tracing.

Some libraries bring operators that read real memory and give results of a size only the
values decide: a step that calls them cannot be traced. Packages that support such a
library have functions over torch's own operators for them, doubles whose shapes are
known beforehand, and trace inside `plain_operators`. Outside a trace the libraries work
as they always do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

Operators = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True)
class PlainOperators:
    """Doubles, by name, of the operators in one namespace of `torch.ops`.

    They answer while `library` is imported, the module that registers the originals. If
    it is not, but `user` is, a library that looks for these operators at every call,
    then the doubles are there all the same: `schemas` says what they are called with.
    """

    library: str
    namespace: str
    doubles: Operators
    user: str = ""
    schemas: Mapping[str, str] = field(default_factory=dict[str, str])


# Before autograd, so that the doubles are differentiated like any other operator;
# libraries register nothing for these keys.
_KEYS = ("AutogradCPU", "AutogradCUDA")


@contextmanager
def plain_operators(libraries: Iterable[PlainOperators]) -> Iterator[None]:
    """Answer the operators of those libraries that are imported with plain ones."""
    with ExitStack() as stack:
        for operators in libraries:
            if operators.library in sys.modules:
                _replace(_library(stack, operators.namespace, "IMPL"), operators)
            elif operators.user in sys.modules:
                _provide(_library(stack, operators.namespace, "FRAGMENT"), operators)
        yield


def _library(stack: ExitStack, namespace: str, kind: str) -> Any:
    return stack.enter_context(torch.library._scoped_library(namespace, kind))


def _has(operators: PlainOperators, name: str) -> bool:
    return hasattr(getattr(torch.ops, operators.namespace), name)


def _replace(library: Any, operators: PlainOperators) -> None:
    for name, double in operators.doubles.items():
        if _has(operators, name):
            for key in _KEYS:
                library.impl(name, double, key)


def _provide(library: Any, operators: PlainOperators) -> None:
    """Define the operators; those that somebody defined in their place answer."""
    _replace(library, operators)
    for name, schema in operators.schemas.items():
        if not _has(operators, name):
            library.define(f"{name}{schema}")
            double = operators.doubles[name]
            library.impl(name, double, "CompositeImplicitAutograd")
