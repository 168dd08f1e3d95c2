"""Which TensorFlow a program was written for: 1, 2, or nothing that shows it.

In: the source of a program's own files, and the two faces that TensorFlow has, of
version 1 (`tensorflow.compat.v1`) and version 2. Out: a `Dialect`. A name decides that
only one of the faces has: `tf.placeholder` is version 1, `tf.optimizers` version 2.
What stands under a question about the version is written for both and says nothing.
"""

from __future__ import annotations

import ast
import enum
import functools
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = [
    "VERSIONS",
    "Dialect",
    "builds_a_graph",
    "dialect_of",
    "is_loaded_module",
    "is_own_file",
    "names_used",
    "own_files",
]

ROOT = "tensorflow"
CONTRIB = "contrib"  # gone from both faces, and version 1 all the same
VERSIONS = frozenset({"__version__", "VERSION"})
# The strategy of Keras programs on the IPU: there never was one for TensorFlow 1.
STRATEGIES = frozenset({"IPUStrategy", "ipu_strategy"})
# Under version 2 these work in a graph only, which the others make or turn to.
IN_GRAPHS = frozenset(
    f"compat.v1.{name}"
    for name in ("Session", "global_variables_initializer", "placeholder")
)
GRAPHS = ("Graph", "disable_eager_execution", "disable_v2_behavior", "wrap_function")
# Below these, modules are the same in both versions.
SHARED = frozenset({"compat", "compiler", "core", "python"})
WRAPPER = "TFModuleWrapper"  # the class of TensorFlow's modules of version 1
# Wherever they are: a virtual environment may see the packages of another Python.
SITES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
MOST_FILES = 200  # of a program that are read; what it is shows in the first of them


class Dialect(enum.Enum):
    """What a program was written for."""

    TENSORFLOW_1 = "TensorFlow 1"
    TENSORFLOW_2 = "TensorFlow 2"
    UNKNOWN = "either"


def dialect_of(texts: Iterable[str], v1: Any, v2: Any) -> Dialect:
    """The dialect of a program's files; a sign of version 2 in one of them decides."""
    names = {name for text in texts for name in names_used(text)}
    paths = [name.split(".") for name in names]
    paths = [path for path in paths if path[0] not in SHARED]
    if names & STRATEGIES or any(has(v2, path) and not has(v1, path) for path in paths):
        return Dialect.TENSORFLOW_2
    if any(is_of_version_1(path, v1, v2) for path in paths):
        return Dialect.TENSORFLOW_1
    return Dialect.UNKNOWN


def builds_a_graph(texts: Iterable[str]) -> bool:
    """Whether a script relies on the graph that version 1 had from the beginning.

    It may say `tensorflow.compat.v1`, which TensorFlow 1.15 had too. What another
    program runs, a test for example, may rely on that one for its graph.
    """
    names = {name for text in texts for name in names_used(text)}
    is_turned = any(name.endswith(GRAPHS) for name in names)
    return bool(names & IN_GRAPHS) and not is_turned and not names & STRATEGIES


def is_of_version_1(path: list[str], v1: Any, v2: Any) -> bool:
    return path[0] == CONTRIB or (has(v1, path) and not has(v2, path))


def has(face: Any, path: list[str]) -> bool:
    """Whether a name exists in a face, as far as can be seen without loading more."""
    for part in path:
        if part not in vars(face):
            return False
        face = vars(face)[part]
        if not is_loaded_module(face):
            return True  # what follows is a class's own
    return True


def is_loaded_module(value: Any) -> bool:
    """Whether it is a module, and none that is loaded when it is used, as Keras is."""
    return type(value) is ModuleType or type(value).__name__ == WRAPPER


def names_used(text: str) -> set[str]:
    """The names below `tensorflow` that some source uses, `train.Saver` for example."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # a cell with magic commands, or Python 2
        return set()
    used = _Names()
    used.visit(tree)
    return used.names


class _Names(ast.NodeVisitor):
    """Collects names below `tensorflow`, whatever it is called in the file."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.aliases: dict[str, str] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            root, _, rest = alias.name.partition(".")
            if root == ROOT:
                self._use(rest)
                self.aliases[alias.asname or ROOT] = rest if alias.asname else ""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        root, _, rest = (node.module or "").partition(".")
        self.names |= {alias.name for alias in node.names} & STRATEGIES
        if root != ROOT or node.level:
            return
        for alias in node.names:
            path = f"{rest}.{alias.name}".strip(".")
            self._use(path)
            self.aliases[alias.asname or alias.name] = path

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            parts.insert(0, inner.attr)
            inner = inner.value
        self.names |= set(parts) & STRATEGIES
        if isinstance(inner, ast.Name) and inner.id in self.aliases:
            self._use(".".join([self.aliases[inner.id], *parts]).strip("."))
        else:
            self.visit(inner)

    def visit_If(self, node: ast.If) -> None:
        # A program that asks for the version is written for both.
        if not VERSIONS & {getattr(each, "attr", "") for each in ast.walk(node.test)}:
            self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> None:
        caught = {getattr(handler.type, "id", "") for handler in node.handlers}
        if "AttributeError" not in caught:
            self.generic_visit(node)

    def _use(self, path: str) -> None:
        if path:
            self.names.add(path)


def own_files(starts: Iterable[str]) -> list[str]:
    """These files and, of the program's own modules, all that they import."""
    found = [name for name in dict.fromkeys(starts) if is_own_file(name)]
    for name in found:  # which grows meanwhile
        if len(found) >= MOST_FILES:
            break
        more = dict.fromkeys(path for path in imported_files(name) if path not in found)
        found.extend([*more][: MOST_FILES - len(found)])
    return found


def is_own_file(name: str) -> bool:
    """Whether a file belongs to the program: not to Python or an installed package."""
    path = os.path.abspath(name)
    if path.startswith(_installed()) or any(folder in path for folder in SITES):
        return False
    return os.path.isfile(path)


@functools.cache  # asked for every file that an import might mean
def _installed() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = {sysconfig.get_path(name) for name in names} | {os.path.dirname(__file__)}
    return tuple(path + os.sep for path in paths if path)


def imported_files(name: str) -> Iterator[str]:
    """The files of modules that a file imports, as far as they are the program's."""
    try:
        tree = ast.parse(Path(name).read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError):
        return
    folder = Path(name).parent
    places = [folder, *(Path(place) for place in sys.path if place)]
    imported = dict.fromkeys(
        found for node in ast.walk(tree) for found in _imports(node, folder)
    )
    for module, base in imported:
        yield from _files_of(module, [base] if base else places)


def _imports(node: ast.AST, folder: Path) -> Iterator[tuple[str, Path | None]]:
    """Modules that a statement may import, and the folder that a relative one names."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, None) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        above = [folder, *folder.parents]
        base = above[min(node.level, len(above)) - 1] if node.level else None
        stem = f"{node.module}." if node.module else ""
        yield from ((stem + alias.name, base) for alias in node.names)


def _files_of(module: str, places: Iterable[Path]) -> Iterator[str]:
    """The file of a module, or, of a name in a module, the file of the module."""
    parts = module.split(".")
    for stem in (parts, parts[:-1]):
        for place in places if stem else ():
            path = place.joinpath(*stem)
            for file in (f"{path}.py", str(path / "__init__.py")):
                if is_own_file(file):
                    yield file
                    return
