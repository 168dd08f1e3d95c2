"""Notebooks on disk: notebooks, their sources, and pages of Markdown, as Documents.

In: a path. Out: nbformat's notebook, or the Document that the rules see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from popple.errors import UsageError
from popple.notebook.document import Cell, Document
from popple.notebook.source import read_source

if TYPE_CHECKING:
    from nbformat import NotebookNode

SUFFIXES = (".ipynb", ".py", ".md", ".txt")
_FENCE = re.compile(r"^(\s*)```\s*(\w*)\s*$")
# A page's blocks that are code of a notebook; others are texts to look at.
_CODE_LANGUAGES = ("", "python", "ipython", "py")


def find_notebooks(paths: list[Path], suffix: str = ".ipynb") -> list[Path]:
    """The files that are meant; a directory stands for the notebooks in it."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inner = sorted(path.rglob(f"*{suffix}"))
            found += [each for each in inner if ".ipynb_checkpoints" not in each.parts]
        elif path.exists() and path.suffix in SUFFIXES:
            found.append(path)
        else:
            raise UsageError(
                f"There is no notebook {str(path)!r}.",
                remedy=f"Name a directory or a file; known are {', '.join(SUFFIXES)}.",
            )
    return found


def load_notebook(path: Path) -> NotebookNode:
    """A notebook; that of a source is built in memory."""
    import nbformat

    if path.suffix == ".py":
        return read_source(path.read_text("utf-8"), path.name)
    try:
        return nbformat.read(path, as_version=4)
    except (ValueError, nbformat.ValidationError) as error:
        raise UsageError(
            f"{path} is no notebook: {error}",
            remedy="Give a file that Jupyter can open.",
        ) from error


def load_document(path: Path) -> Document:
    """What the rules see of a file."""
    if path.suffix in (".md", ".txt"):
        return Document(tuple(_read_page(path.read_text("utf-8"))), path)
    return make_document(load_notebook(path), path)


def make_document(notebook: NotebookNode, path: Path | None = None) -> Document:
    """What the rules see of a notebook."""
    cells = tuple(
        Cell(
            number,
            cell.cell_type,
            cell.source,
            frozenset(cell.metadata.get("tags", [])),
            tuple(cell.get("outputs", [])),
            cell.get("execution_count"),
            tuple(cell.metadata),
        )
        for number, cell in enumerate(notebook.cells, start=1)
    )
    return Document(cells, path, tuple(notebook.metadata))


def _read_page(text: str) -> Iterator[Cell]:
    """A page of Markdown: its code blocks are code cells, the text between is text.

    Blocks that are quoted or in a list belong to their text.
    """
    number, kind, lines, first = 1, "markdown", list[str](), 1
    for place, line in enumerate(text.splitlines(), start=1):
        fence = _FENCE.match(line)
        is_border = bool(fence) and (
            kind == "code" or (fence[2] in _CODE_LANGUAGES and not fence[1])
        )
        if not is_border:
            lines.append(line)
            continue
        if any(each.strip() for each in lines):
            source = _dedent(lines) if kind == "code" else "\n".join(lines)
            yield Cell(number, kind, source, first_line=first)
            number += 1
        kind, lines = ("markdown" if kind == "code" else "code"), []
        first = place + 1
    if any(each.strip() for each in lines):
        yield Cell(number, kind, "\n".join(lines), first_line=first)


def _dedent(lines: list[str]) -> str:
    """Code without the indent of its first line, as far as each line has it."""
    first = next(line for line in lines if line.strip())
    width = len(first) - len(first.lstrip())
    return "\n".join(line[min(width, _indent(line)) :] for line in lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
