"""Builds all sources that are meant, executed or not.

In: sources, or directories of them. Out: the files written, or those out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from popple.errors import UsageError
from popple.notebook.build import build, find_stale, is_product, is_source, write
from popple.notebook.execute import execute
from popple.notebook.files import find_notebooks

if TYPE_CHECKING:
    from nbformat import NotebookNode


def find_sources(paths: list[Path]) -> list[Path]:
    """Sources; in a directory those that have a notebook already."""
    found: list[Path] = []
    for path in paths:
        inner = find_notebooks([path], suffix=".py")
        found += [each for each in inner if is_source(each)] if path.is_dir() else inner
    wrong = [each for each in found if each.suffix != ".py" or is_product(each)]
    if wrong:
        raise UsageError(
            f"{wrong[0]} is no source.", remedy="Give the .py file it is built from."
        )
    return found


def list_stale(paths: list[Path]) -> list[Path]:
    """Products that differ from what their sources give."""
    return [p for source in find_sources(paths) for p in find_stale(build(source))]


def write_all(
    paths: list[Path], environment: Mapping[str, str] | None
) -> Iterator[Path]:
    """Write all products; with an environment, pages show what cells print."""
    for source in find_sources(paths):
        runner: Callable[[NotebookNode], NotebookNode] | None = None
        if environment is not None:
            runner = partial(_execute, source, environment)
        yield from write(build(source, runner))


def _execute(
    source: Path, environment: Mapping[str, str], notebook: NotebookNode
) -> NotebookNode:
    done = execute(notebook, source.parent, environment)
    if not done.passed:
        raise UsageError(
            f"{source}, cell {done.spot.cell}: {done.spot.detail}",
            remedy="Correct it; 'popple notebook run' shows the whole error.",
        )
    return done.notebook
