"""Builds a notebook, its page and its program from one source, or compares them.

In: a source `name.py`. Out: `name.ipynb`, `README.md`, `name_code_only.py` beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from popple.files import write_atomically
from popple.notebook.render import (
    Page,
    digest_of,
    render_notebook,
    render_page,
    render_program,
    with_outputs_of,
    without_outputs,
)
from popple.notebook.source import read_source

if TYPE_CHECKING:
    from nbformat import NotebookNode

README = "README.md"
_PROGRAM = "_code_only"


@dataclass(frozen=True)
class Products:
    """What a source gives: texts by path, and the pictures of its page."""

    texts: dict[Path, str]
    pictures: dict[Path, bytes] = field(default_factory=dict)
    files: str = ""


def build(
    source: Path, execute: Callable[[NotebookNode], NotebookNode] | None = None
) -> Products:
    """The products of a source; with `execute`, the page has new outputs.

    Without it, those of an earlier run stay where code has not changed.
    """
    text = source.read_text("utf-8")
    notebook = read_source(text, source.name)
    digest, files = digest_of(text), f"{source.stem}_files"
    shown = execute(notebook) if execute else notebook
    page: Page = render_page(shown, source.name, digest, files)
    home = source.parent
    readme = home / README
    if execute is None and readme.exists():
        kept = with_outputs_of(readme.read_text("utf-8"), page.text)
        page = replace(page, text=kept)
    texts = {
        home / f"{source.stem}.ipynb": render_notebook(notebook, source.name),
        readme: page.text,
        home / f"{source.stem}{_PROGRAM}.py": render_program(
            notebook, source.name, digest
        ),
    }
    pictures = {home / path: data for path, data in page.pictures.items()}
    return Products(texts, pictures, files)


def write(products: Products) -> list[Path]:
    """Write the files; pictures of an earlier run give way."""
    for path, text in products.texts.items():
        write_atomically(path, text)
    folder = next(iter(products.texts)).parent / products.files
    shown = "".join(products.texts.values())
    for old in folder.glob("cell-*.png"):
        if f"{folder.name}/{old.name}" not in shown:
            old.unlink()
    for path, data in products.pictures.items():
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, data)
    return [*products.texts, *products.pictures]


def find_stale(products: Products) -> list[Path]:
    """Files that are missing, or differ from what a build would write."""
    return [
        path
        for path, text in products.texts.items()
        if not path.exists()
        or without_outputs(path.read_text("utf-8"), products.files)
        != without_outputs(text, products.files)
    ]


def is_product(path: Path) -> bool:
    """Whether a Python file is the program that a source gives."""
    return path.stem.endswith(_PROGRAM)


def is_source(path: Path) -> bool:
    """Whether a Python file is a source, and no product or module beside one."""
    return not is_product(path) and path.with_suffix(".ipynb").exists()
