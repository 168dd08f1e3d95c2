"""The repository's own Python files, parsed once, for the tests that read them.

In: the tree around this file. Out: `Source` values (module name, path, text, AST).
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tensorflow_ipu._finder import FOLDERS

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
TESTS = ROOT / "tests"


# What is imported under another name than where it lies: the longest name first.
SERVED = {name: f"tensorflow_ipu.{FOLDERS[name]}" for name in sorted(FOLDERS)[::-1]}


def exchange(module: str, names: Mapping[str, str]) -> str:
    """A module name with its beginning replaced, if `names` replaces it."""
    whole = f"{module}."
    found = (name for name in names if whole.startswith(f"{name}."))
    name = next(found, "")
    return names[name] + module[len(name) :] if name else module


def name_in_src(module: str) -> str:
    """The name of a module by the place where it lies."""
    return exchange(module, SERVED)


def imported_name(module: str) -> str:
    """The name under which a module that lies in src/ is imported."""
    return exchange(module, {place: name for name, place in SERVED.items()})


@dataclass(frozen=True)
class Source:
    """One Python file: its dotted module name, where it lies, text and AST."""

    module: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


def parse_source(path: Path, base: Path) -> Source:
    parts = path.relative_to(base).with_suffix("").parts
    names = parts[:-1] if parts[-1] == "__init__" else parts
    text = path.read_text(encoding="utf-8")
    return Source(".".join(names), path, text, ast.parse(text, str(path)))


@functools.cache
def sources_of_product() -> tuple[Source, ...]:
    """Every Python file under src/."""
    return tuple(parse_source(p, SRC) for p in sorted(SRC.rglob("*.py")))


@functools.cache
def sources_of_tests() -> tuple[Source, ...]:
    """Every Python file under tests/."""
    return tuple(parse_source(p, ROOT) for p in sorted(TESTS.rglob("*.py")))
