"""Reads a table of names, signatures and values, and compares code with it.

A table is a CSV file with one fact per row.
"""

from __future__ import annotations

import ast
import csv
import importlib
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Row(NamedTuple):
    """One fact: where a name is, what it is, how it is called."""

    module: str
    name: str
    kind: str
    signature: str

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


def rows(table: str) -> list[Row]:
    """The facts of the table of that name, which lies beside this file."""
    with Path(__file__).with_name(f"{table}.csv").open(newline="") as file:
        return [Row(**fields) for fields in csv.DictReader(file)]


def find(path: str) -> Any:
    """The object a dotted path names; AttributeError or ImportError if none."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            thing = inspect.getattr_static(thing, part)
        return thing
    raise ImportError(path)


def expected_parameters(signature: str) -> list[tuple[str, str]]:
    """Names and defaults as text: "(self, x, n=1)" -> [("self", ""), ...]."""
    arguments = ast.parse(f"def f{signature}: ...").body[0].args  # pyright: ignore
    names = [argument.arg for argument in arguments.args]
    defaults = [ast.unparse(default) for default in arguments.defaults]
    pairs = list(
        zip(names, [""] * (len(names) - len(defaults)) + defaults, strict=True)
    )
    if arguments.vararg:
        pairs.append((f"*{arguments.vararg.arg}", ""))
    pairs += [
        (argument.arg, ast.unparse(default) if default else "")
        for argument, default in zip(
            arguments.kwonlyargs, arguments.kw_defaults, strict=True
        )
    ]
    if arguments.kwarg:
        pairs.append((f"**{arguments.kwarg.arg}", ""))
    return pairs


def found_parameters(function: Any) -> list[tuple[str, str]]:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        (f"{stars.get(p.kind, '')}{p.name}", default_text(p.default))
        for p in inspect.signature(function).parameters.values()
    ]


def default_text(default: Any) -> str:
    if default is inspect.Parameter.empty:
        return ""
    if inspect.isfunction(default):
        return "..."
    is_member = hasattr(type(default), "__members__")
    return f"{type(default).__name__}.{default.name}" if is_member else repr(default)


def of_kind(facts: Sequence[Row], *kinds: str) -> Any:
    """Run a test for every fact of these kinds."""
    chosen = [row for row in facts if row.kind in kinds]
    return pytest.mark.parametrize("row", chosen, ids=lambda row: row.path)
