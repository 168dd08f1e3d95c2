"""What the source of a configuration class says beyond what Python keeps of it.

Python forgets the hints of attributes (`self.x: int = 1`) and the strings above them,
so they are read from the source of `__init__`, once for each class.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Declaration:
    """One attribute as `__init__` declares it; a hint of None means none is given."""

    doc: str = ""
    hint: Any = None


def declarations(init: Callable[..., None]) -> Mapping[str, Declaration]:
    """The attributes that an `__init__` function declares, by name."""
    return dict(_read(init))


@functools.cache
def _read(init: Callable[..., None]) -> tuple[tuple[str, Declaration], ...]:
    try:
        source = inspect.getsource(init)
    except OSError:
        # Typed into an interpreter: the class works, without hints and texts.
        return ()
    nodes = ast.walk(_parse(source))
    function = next(node for node in nodes if isinstance(node, ast.FunctionDef))
    names = getattr(init, "__globals__", {})
    return tuple(_declarations_in(function.body, names))


def _parse(source: str) -> ast.AST:
    """The indented source of a method; its strings may be indented less."""
    return ast.parse(f"if True:\n{source}" if source[0].isspace() else source)


def _declarations_in(
    body: list[ast.stmt], names: dict[str, Any]
) -> Iterator[tuple[str, Declaration]]:
    doc = ""
    for statement in body:
        name = _attribute_name(statement)
        if name:
            yield name, Declaration(doc, _hint(statement, names))
        doc = _text(statement)


def _attribute_name(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Attribute(attr=name)]):
            return name
        case ast.AnnAssign(target=ast.Attribute(attr=name)):
            return name
    return None


def _hint(statement: ast.stmt, names: dict[str, Any]) -> Any:
    if not isinstance(statement, ast.AnnAssign):
        return None
    # In the names of the module that declares it: hints may be its own classes.
    return eval(ast.unparse(statement.annotation), names)


def _text(statement: ast.stmt) -> str:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return ""
