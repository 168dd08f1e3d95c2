"""Calls of setters, read from text and never executed as Python.

In: the tree of one line of an option file. Out: the setters it names, called. A line is
a call of a setter or a chain of them; arguments are numbers, text, lists, dicts, enums
of poptorch, and what its execution strategies and tensor locations are made of.
Everything else is refused: a file of options must not be able to do more.
"""

from __future__ import annotations

import ast
import enum
import operator
import sys
from collections.abc import Callable, Collection
from typing import Any

from popple.errors import suggest

from .. import enums

__all__ = ["Refused", "call_setters"]

# Classes that arguments may be made of, by the names that poptorch gives them.
_TYPES = (
    "ParallelPhasedExecution",
    "Phase",
    "PipelinedExecution",
    "SerialPhasedExecution",
    "ShardedExecution",
    "Stage",
    "TensorLocationSettings",
)
_SUBMODULES = ("enums", "options")
_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
# No powers: a short one can take all memory.
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


class Refused(ValueError):
    """Something that an option file may not say."""


def call_setters(options: Any, tree: ast.Module, names: Collection[str]) -> None:
    """Call what a line names on `options`; `names` are the setters there are."""
    reader = _Reader(options, names)
    for statement in tree.body:
        if not isinstance(statement, ast.Expr) or not isinstance(
            statement.value, ast.Call
        ):
            raise Refused("A line must be the call of a setter.")
        reader.call(statement.value)


class _Reader:
    """Evaluates the few forms that arguments have."""

    def __init__(self, options: Any, names: Collection[str]) -> None:
        self._options = options
        self._names = names

    def call(self, node: ast.Call) -> Any:
        """The result of a setter, of a class of poptorch, or of a method of either."""
        function = self._function(node.func)
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            raise Refused("Arguments cannot be unpacked.")
        args = [self._value(argument) for argument in node.args]
        kwargs = {k.arg: self._value(k.value) for k in node.keywords}
        if None in kwargs:
            raise Refused("Arguments cannot be unpacked.")
        return function(*args, **{str(name): value for name, value in kwargs.items()})

    def _function(self, node: ast.expr) -> Callable[..., Any]:
        path = _path_of(node)
        if path and path[0] == "options":
            return self._setter(".".join(path[1:]))
        if path:
            return _named(path)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
            return self._method(self.call(node.value), node.attr)
        raise Refused(f"{ast.unparse(node)} is no setter.")

    def _setter(self, name: str) -> Callable[..., Any]:
        if name not in self._names:
            raise AttributeError(f"Unknown option {name}. {suggest(name, self._names)}")
        found = self._options
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def _method(self, owner: Any, name: str) -> Callable[..., Any]:
        """A method of something made before: what setters return is chained."""
        is_ours = type(owner).__module__.partition(".")[0] == __name__.partition(".")[0]
        found = getattr(type(owner), name, None)
        if not is_ours or name.startswith("_") or not callable(found):
            raise Refused(f"{type(owner).__name__} has nothing to call named {name}.")
        return getattr(owner, name)

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            items = [self._value(item) for item in node.elts]
            kinds = {ast.List: list, ast.Tuple: tuple, ast.Set: set}
            return kinds[type(node)](items)
        if isinstance(node, ast.Dict):
            return self._dict(node)
        if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            return _UNARY[type(node.op)](self._value(node.operand))
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return self._arithmetic(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        if path := _path_of(node):
            return _named(path)
        raise Refused(f"{ast.unparse(node)} is no value that a file may give.")

    def _dict(self, node: ast.Dict) -> dict[Any, Any]:
        if None in node.keys:
            raise Refused("A dict cannot be unpacked.")
        keys = [self._value(key) for key in node.keys if key is not None]
        values = [self._value(value) for value in node.values]
        return dict(zip(keys, values, strict=True))

    def _arithmetic(self, node: ast.BinOp) -> int | float:
        values = self._value(node.left), self._value(node.right)
        if not all(isinstance(value, int | float) for value in values):
            raise Refused(f"{ast.unparse(node)}: only numbers can be computed with.")
        return _BINARY[type(node.op)](*values)


def _path_of(node: ast.expr) -> list[str]:
    """["poptorch", "OutputMode", "All"]; empty for what is no dotted name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


def _named(path: list[str]) -> Any:
    """The class, enum or member of an enum that poptorch has under a dotted name."""
    text = ".".join(path)
    names = path[2:] if path[1:2] and path[1] in _SUBMODULES else path[1:]
    if path[0] != "poptorch" or not names:
        raise Refused(f"{text} is not known here: only names of poptorch are.")
    kind = getattr(enums, names[0], None)
    if isinstance(kind, enum.EnumMeta) and len(names) <= 2:
        return kind if len(names) == 1 else _member(kind, names[1])
    if len(names) == 1 and names[0] in _TYPES:
        # The package that holds this module is loaded, so it need not be imported.
        return getattr(sys.modules["poptorch"], names[0])
    raise Refused(f"{text} cannot be used in a file of options.")


def _member(kind: enum.EnumMeta, name: str) -> Any:
    if name not in kind.__members__:
        raise AttributeError(
            f"{kind.__name__} has no member {name}. {suggest(name, kind.__members__)}"
        )
    return kind.__members__[name]
