"""Options from outside: JSON text and option files.

JSON: {"Training.gradientAccumulation": 4, "_Popart.set": ["key", 1]}.
File: one setter call per line, without the leading `options.`.
"""

from __future__ import annotations

import ast
import enum
import json
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from popple.errors import suggest

from .. import enums
from .._errors import ConfigFileError
from .calls import Refused, call_setters

__all__ = ["apply_file", "apply_json"]


def apply_json(options: Any, text: str, names: Iterable[str]) -> None:
    """Call the setters that the JSON object `text` names, among `names`."""
    for name, value in _parse_json(text).items():
        method = _find_setter(options, name, names)
        if isinstance(value, list):
            method(*[_enum_or_text(item) for item in value])
        else:
            method(_enum_or_text(value))


def _parse_json(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"Options are not valid JSON: {error}. Got: {text}") from error
    if not isinstance(values, dict):
        raise ValueError(f"Options must be a JSON object of name: value. Got: {text}")
    return values


def _find_setter(options: Any, name: str, names: Iterable[str]) -> Callable[..., Any]:
    if name not in names:
        raise AttributeError(f"Unknown option {name}. {suggest(name, names)}")
    target = options
    for part in name.split("."):
        target = getattr(target, part)
    return target


def _enum_or_text(value: Any) -> Any:
    """The enumeration member a string like "OutputMode.All" names, else `value`."""
    if not isinstance(value, str):
        return value
    kind_name, _, member = value.partition(".")
    kind = getattr(enums, kind_name, None)
    if isinstance(kind, enum.EnumMeta) and member in kind.__members__:
        return kind[member]
    return value


def apply_file(options: Any, path: str, names: Collection[str]) -> None:
    """Call the setters that the lines of a file name, among `names`.

    Lines are read as calls and never run as Python; none counts if one is no Python.
    """
    file = Path(path)
    lines = [f"options.{line}" for line in _kept_lines(file.read_text())]
    trees = [_parsed(line, number, file) for number, line in enumerate(lines, 1)]
    for number, (line, tree) in enumerate(zip(lines, trees, strict=True), 1):
        try:
            call_setters(options, tree, names)
        except Refused as error:
            place = f"at line {number} of {file.name}"
            raise ConfigFileError(
                f"Not an option {place}: {error}\n> {line}"
            ) from error


def _parsed(line: str, number: int, file: Path) -> ast.Module:
    try:
        return ast.parse(line)
    except SyntaxError as error:
        unclosed = "was never closed" in error.msg
        detail = "unexpected EOF while parsing" if unclosed else error.msg
        raise ConfigFileError(
            f"SyntaxError at line {number} of {file.name}: {detail}\n> {line}"
        ) from error


def _kept_lines(text: str) -> list[str]:
    stripped = [line.strip() for line in text.splitlines()]
    return [line for line in stripped if line and not line.startswith("#")]
