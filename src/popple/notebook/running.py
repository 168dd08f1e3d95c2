"""Runs notebooks one after the other and says how each went."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from popple.files import write_atomically
from popple.notebook.execute import Execution, execute
from popple.notebook.files import find_notebooks, load_notebook
from popple.notebook.render import without_colours


def run_files(
    paths: list[Path],
    environment: Mapping[str, str],
    timeout_seconds: int,
    output: Path | None,
) -> Iterator[tuple[Path, Execution]]:
    """Run them; how each went is known as soon as it has ended."""
    for path in find_notebooks(paths):
        with tempfile.TemporaryDirectory(prefix="popple-notebook-") as scratch:
            own = {"CHECKPOINT_DIR": scratch, "DATASETS_DIR": scratch, **environment}
            notebook = load_notebook(path)
            done = execute(notebook, path.parent, own, timeout_seconds)
        if output is not None:
            keep(done, output / f"{path.stem}.ipynb")
        yield path, done


def describe(path: Path, done: Execution) -> str:
    """One line, and the error of a cell that failed."""
    if done.passed:
        return f"{path}: passed in {done.seconds:.1f} s, holds no IPU"
    text = f"{path}: failed in cell {done.spot.cell}: {done.spot.detail}"
    return "\n".join(filter(None, [text, without_colours(done.traceback)]))


def keep(done: Execution, path: Path) -> None:
    """Write an executed notebook, outputs included."""
    import nbformat

    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, nbformat.writes(done.notebook) + "\n")
