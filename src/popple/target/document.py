"""Documents: TOML files of chips and systems, checked, with `file:line` in errors.

In: the text of a chip or system file. Out: constants checked against their `Spec`,
each with its source; whatever is wrong is reported as `file:line`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TypeAlias, cast

from popple.errors import TargetError, suggest
from popple.target.schema import Scalar, Spec, specs_of

Table: TypeAlias = Mapping[str, object]

# The standard library reads TOML from Python 3.11 on; tomli is the same code.
_TOML_MODULE = "tomllib" if sys.version_info >= (3, 11) else "tomli"
_parse_toml: Callable[[str], Table] = import_module(_TOML_MODULE).loads

_CONSTANT_KEYS = ("value", "unit", "source")


@dataclass(frozen=True)
class Document:
    """One table of a TOML file: the whole file, or its [chip] table.

    Built-in files are `strict`: every constant has a unit and a source. In the files
    of users a plain number will do.
    """

    path: str
    text: str = field(repr=False)
    table: Table = field(repr=False)
    strict: bool = False
    section: str = ""

    def locate(self, key: str) -> str:
        """`file:line` of a key, or the file alone if it does not have the key."""
        keys = (self.section, key) if self.section else (key,)
        line = _find_line(self.text, keys)
        return self.path if line is None else f"{self.path}:{line}"

    def open_section(self, key: str) -> Document:
        """The table under `key` as a document of its own."""
        table = as_table(self.table[key])
        if table is None:
            raise self.refuse(key, f"{key} must be a name or a table.")
        return Document(self.path, self.text, table, self.strict, key)

    def refuse(self, key: str, what: str, remedy: str = "") -> TargetError:
        """The error to raise about `key`."""
        return TargetError(what, where=self.locate(key), remedy=remedy)

    def find_text(self, key: str) -> str | None:
        """The text under `key`, or None."""
        value = self.table.get(key)
        if value is not None and not isinstance(value, str):
            raise self.refuse(key, f"{key} must be text, but is {value!r}.")
        return value

    def find_list(self, key: str, kind: type) -> tuple[object, ...]:
        """The list under `key`, all of one kind; nothing there is an empty list."""
        raw = self.table.get(key, [])
        items = cast("list[object]", raw) if isinstance(raw, list) else None
        if items is None or any(type(item) is not kind for item in items):
            raise self.refuse(key, f"{key} must be a list of {kind.__name__}.")
        return tuple(items)


def read_document(path: Path) -> Document:
    """The file of a user."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(
            f"Cannot read the target file: {error}.",
            where=str(path),
            remedy="Name a readable TOML file, or a built-in system.",
        ) from error
    return parse_document(text, str(path))


def parse_document(text: str, path: str, *, strict: bool = False) -> Document:
    """The text of a file; `path` is what errors call it."""
    try:
        table = _parse_toml(text)
    except ValueError as error:
        raise TargetError(
            f"This is not TOML: {error}.",
            where=f"{path}:{_get_error_line(str(error), text)}",
            remedy="Correct the syntax; https://toml.io shows it.",
        ) from error
    return Document(path, text, table, strict)


def verify_keys(
    document: Document, known: Iterable[str], hints: Iterable[str] = ()
) -> None:
    """Raise for a key that is not known; `hints` are names that may have been meant."""
    names = frozenset(known)
    for key in document.table:
        if key not in names:
            remedy = suggest(key, names.union(hints))
            raise document.refuse(key, f"Unknown key {key!r}.", remedy)


def read_constants(
    document: Document, part_class: type
) -> tuple[dict[str, Scalar], dict[str, str]]:
    """Values and sources of the constants of a part that stand in a document."""
    values: dict[str, Scalar] = {}
    sources: dict[str, str] = {}
    for key, spec in specs_of(part_class).items():
        if key in document.table:
            values[key], sources[key] = _read_constant(document, key, spec)
    return values, sources


def as_table(raw: object) -> Table | None:
    """A TOML value as a table, or None if it is none."""
    return cast("Table", raw) if isinstance(raw, dict) else None


def _read_constant(document: Document, key: str, spec: Spec) -> tuple[Scalar, str]:
    raw = document.table[key]
    table = as_table(raw)
    entry: Table = {"value": raw} if table is None else table
    _verify_entry(document, key, spec, entry)
    value = cast("Scalar", entry["value"])
    source = entry.get("source", f"given in {Path(document.path).name}")
    return (float(value) if spec.kind is float else value), str(source)


def _verify_entry(document: Document, key: str, spec: Spec, entry: Table) -> None:
    for word in entry:
        if word not in _CONSTANT_KEYS:
            remedy = suggest(word, _CONSTANT_KEYS)
            raise document.refuse(key, f"Unknown key {word!r} in {key}.", remedy)
    for word in _CONSTANT_KEYS if document.strict else _CONSTANT_KEYS[:1]:
        if entry.get(word) in (None, ""):
            raise document.refuse(key, f"{key} has no {word}.", f"Add {word} = ... .")
    unit = entry.get("unit", spec.unit)
    if unit != spec.unit:
        remedy = f"Convert the value and write unit = {spec.unit!r}."
        raise document.refuse(key, f"{key} is in {spec.unit}, not {unit!r}.", remedy)
    fault = spec.find_fault(entry["value"])
    if fault:
        raise document.refuse(key, f"{key} {fault}.")


def _find_line(text: str, keys: Sequence[str]) -> int | None:
    """The line, from 1, of the statement that sets a key or opens its table.

    TOML readers do not say where a key stands, so the beginning of the file is read
    line by line until the key is in it. That is slow, and done for errors only.
    """
    num_read = 0
    # TOML ends lines with "\n" alone or after "\r"; `splitlines` knows other ends too.
    lines = text.split("\n")
    for num_lines in range(1, len(lines) + 1):
        try:
            table = _parse_toml("\n".join(lines[:num_lines]) + "\n")
        except ValueError:  # a statement of several lines is not complete yet
            continue
        if _has_key(table, keys):
            return num_read + 1
        num_read = num_lines
    return None


def _has_key(table: Table, keys: Sequence[str]) -> bool:
    inner: Table | None = table
    for key in keys:
        if inner is None or key not in inner:
            return False
        inner = as_table(inner[key])
    return True


def _get_error_line(message: str, text: str) -> int:
    """The line a TOML error speaks of; at the end of the document it names none."""
    # Before Python 3.14 the error has no attribute for it: its message is all there is.
    found = re.search(r"at line (\d+)", message)
    return int(found[1]) if found else max(1, len(text.splitlines()))
