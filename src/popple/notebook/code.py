"""Code cells as syntax trees, and the questions that rules ask of them.

Magics (`%pip`, `!make`) are no Python: they are blanked, so that line numbers stay, and
listed beside the tree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Magic:
    """A line for IPython or a shell: `%pip install x`, `!make`."""

    text: str
    cell: int
    line: int


@dataclass(frozen=True)
class ParsedCell:
    """The tree of a cell, or why there is none."""

    cell: int
    tree: ast.Module
    magics: tuple[Magic, ...] = ()
    error: str = ""
    error_line: int = 0


@dataclass(frozen=True)
class Call:
    """A call, by the words of what is called: `poptorch.trainingModel`."""

    name: str
    node: ast.Call
    cell: int

    @property
    def line(self) -> int:
        return self.node.lineno

    @property
    def method(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class EnvironmentRead:
    """`name = os.getenv("VARIABLE", default)`; `name` is empty if it is not kept."""

    variable: str
    name: str
    default: ast.expr | None
    cell: int
    line: int


def parse_cell(source: str, cell: int) -> ParsedCell:
    """The tree of a cell's Python, its magics apart."""
    if source.lstrip().startswith("%%") and not source.lstrip().startswith("%%time"):
        return ParsedCell(cell, ast.Module([], []), (Magic(source, cell, 1),))
    lines = source.splitlines()
    magics = tuple(
        Magic(line.strip(), cell, number)
        for number, line in enumerate(lines, start=1)
        if is_magic(line)
    )
    text = "\n".join(_blank(line) for line in lines)
    try:
        return ParsedCell(cell, ast.parse(text), magics)
    except SyntaxError as error:
        empty = ast.Module([], [])
        return ParsedCell(cell, empty, magics, error.msg, error.lineno or 1)


def is_magic(line: str) -> bool:
    return line.lstrip().startswith(("%", "!"))


def _blank(line: str) -> str:
    """A magic may be all there is in a block, so something stays."""
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}pass" if is_magic(line) else line


def dotted(node: ast.AST) -> str:
    """`a.b.c` as text; a call in between is its callee, anything else is `?`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return dotted(node.func) if isinstance(node, ast.Call) else "?"


def calls(cells: Iterable[ParsedCell]) -> Iterator[Call]:
    """Every call, in order."""
    for parsed in cells:
        found = [node for node in ast.walk(parsed.tree) if isinstance(node, ast.Call)]
        found.sort(key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0))
        yield from (Call(dotted(node.func), node, parsed.cell) for node in found)


def imports(cells: Iterable[ParsedCell]) -> Iterator[tuple[str, int, int]]:
    """Imported modules (`a.b` for `from a import b`) with cell and line."""
    for parsed in cells:
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.Import):
                yield from ((a.name, parsed.cell, node.lineno) for a in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    yield f"{node.module}.{alias.name}", parsed.cell, node.lineno


def environment_reads(cells: Iterable[ParsedCell]) -> Iterator[EnvironmentRead]:
    """Where variables of the environment are read, and under which name kept."""
    for parsed in cells:
        names = _names_of_reads(parsed.tree)
        for node in ast.walk(parsed.tree):
            found = _read_of(node)
            if found is not None:
                line = getattr(node, "lineno", 1)
                name = names.get(id(node), "")
                yield EnvironmentRead(found[0], name, found[1], parsed.cell, line)


def _names_of_reads(tree: ast.Module) -> dict[int, str]:
    """The name that each expression is assigned to, by the id of every part of it."""
    names: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            for part in ast.walk(node.value):
                names[id(part)] = node.targets[0].id
    return names


def _read_of(node: ast.AST) -> tuple[str, ast.expr | None] | None:
    """Variable and default of `os.getenv`, `os.environ.get` or `os.environ[...]`."""
    if isinstance(node, ast.Call) and node.args:
        name = dotted(node.func)
        key = text_of(node.args[0])
        if name.endswith(("getenv", "environ.get")) and key:
            return key, node.args[1] if len(node.args) > 1 else None
    if isinstance(node, ast.Subscript) and dotted(node.value).endswith("environ"):
        key = text_of(node.slice) if isinstance(node.ctx, ast.Load) else ""
        return (key, None) if key else None
    return None


def text_of(node: ast.AST) -> str:
    """The value of a literal text, else nothing."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


def attribute_writes(
    cells: Iterable[ParsedCell],
) -> Iterator[tuple[str, ast.expr, int]]:
    """`a.b.c = value`: the name, the value, the cell."""
    for parsed in cells:
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Attribute):
                        yield dotted(target), node.value, parsed.cell


def names_read(cells: Iterable[ParsedCell]) -> Iterator[tuple[str, int, int]]:
    """Names that are used, with cell and line; those that lines for a shell use too."""
    for parsed in cells:
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield node.id, parsed.cell, node.lineno
        for magic in parsed.magics:
            for word in _braced(magic.text):
                yield word, parsed.cell, magic.line


def _braced(text: str) -> list[str]:
    """`{name}` and `$name` in a line for a shell."""
    words = text.replace("$", " {").replace("{", " {").split(" ")
    return [w[1:].split("}")[0].split("/")[0] for w in words if w.startswith("{")]
