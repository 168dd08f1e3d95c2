"""Runs a notebook to its end: `python -m examples_utils.benchmarks.notebook_utils`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from popple.errors import UsageError

__all__ = ["main", "run_notebook"]


def run_notebook(
    notebook_filename: str | Path, expected_path: str | Path, timeout: int | None = None
) -> str:
    """Run a notebook in a directory; what its cells wrote to stdout.

    An error of a cell is raised with its traceback.
    """
    try:
        import nbclient  # pyright: ignore[reportMissingImports]
        import nbformat  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UsageError(
            "Running notebooks needs nbclient and nbformat.",
            remedy="Install them: pip install 'popple[notebook]'.",
        ) from error
    notebook = nbformat.read(notebook_filename, as_version=4)
    place = {"metadata": {"path": str(expected_path)}}
    nbclient.NotebookClient(notebook, timeout=timeout, resources=place).execute()
    outputs = (out for cell in notebook.cells for out in cell.get("outputs", ()))
    return "".join(out.text for out in outputs if out.get("name") == "stdout")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the notebook that the command line names and print what it wrote."""
    parser = ArgumentParser(description="Run a notebook.")
    parser.add_argument("notebook")
    parser.add_argument("directory", nargs="?", default=".")
    parser.add_argument("--timeout", type=int)
    given = parser.parse_args(argv)
    sys.stdout.write(run_notebook(given.notebook, given.directory, given.timeout))
    return 0


if __name__ == "__main__":
    sys.exit(main())
