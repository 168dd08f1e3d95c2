"""Products of a source: what is in them, and when they are out of date."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pytest

from popple.errors import UsageError
from popple.notebook.build import build, find_stale, write
from popple.notebook.building import find_sources, list_stale
from popple.notebook.render import render_page
from popple.notebook.source import read_source
from tests.notebook.test_source import PERCENT


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "demo.py"
    path.write_text(PERCENT, encoding="utf-8")
    return path


def test_the_notebook_has_the_cells_and_says_where_they_are_from(source: Path) -> None:
    text = build(source).texts[source.with_suffix(".ipynb")]
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells][:3] == [
        "Copyright (c) 2024 Example",
        "*Notebook generated from demo.py*",
        "# A title",
    ]
    assert all(not cell.metadata for cell in notebook.cells)


def test_the_program_has_the_code_that_is_not_left_out(source: Path) -> None:
    text = build(source).texts[source.with_name("demo_code_only.py")]
    assert text.startswith("# Copyright (c) 2024 Example\n")
    assert ast.unparse(ast.parse(text)) == "import os\nprint(os.name)"


def test_functions_have_air_around_them(source: Path) -> None:
    source.write_text("# %%\nx = 1\n\n# %%\ndef f():\n    pass\n\n# %%\ny = 2\n")
    text = build(source).texts[source.with_name("demo_code_only.py")]
    assert "x = 1\n\n\ndef f():\n    pass\n\n\ny = 2\n" in text


def test_a_page_shows_outputs_but_not_hidden_ones(source: Path) -> None:
    notebook = read_source(PERCENT)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [
                nbformat.v4.new_output("stream", name="stdout", text="printed\n"),
                nbformat.v4.new_output("display_data", data={"image/png": "AAAA"}),
            ]
    page = render_page(notebook, "demo.py", "0" * 16, "demo_files")
    # Of three code cells one hides what it printed.
    assert page.text.count("```output\nprinted\n```") == 2
    assert list(page.pictures) == [
        "demo_files/cell-03-1.png",
        "demo_files/cell-05-1.png",
    ]
    assert "```ipython\n%pip install" in page.text


def test_what_was_written_is_current_until_something_changes(source: Path) -> None:
    products = build(source)
    assert len(find_stale(products)) == 3
    write(products)
    assert list_stale([source.parent]) == []
    source.write_text(PERCENT.replace("Text.", "Other text."), encoding="utf-8")
    stale = [path.name for path in list_stale([source.parent])]
    assert stale == ["demo.ipynb", "README.md", "demo_code_only.py"]


def test_outputs_of_a_page_do_not_make_it_stale(source: Path) -> None:
    write(build(source))
    page = source.with_name("README.md")
    text = page.read_text().replace(
        "print(os.name)\n```\n",
        "print(os.name)\n```\n\n```output\nposix\n```\n\n![Figure](demo_files/a.png)\n",
    )
    page.write_text(text)
    assert list_stale([source]) == []
    page.write_text(text.replace("# A title", "# Another title"))
    assert list_stale([source]) == [page]


def test_only_sources_are_built(source: Path) -> None:
    write(build(source))
    source.with_name("api.py").write_text("x = 1\n")
    assert find_sources([source.parent]) == [source]
    for product in (
        source.with_suffix(".ipynb"),
        source.with_name("demo_code_only.py"),
    ):
        with pytest.raises(UsageError, match="is no source"):
            find_sources([product])


def test_outputs_stay_where_code_has_not_changed(source: Path) -> None:
    write(build(source))
    page, folder = source.with_name("README.md"), source.with_name("demo_files")
    shown = "```output\nposix\n```\n\n![Figure](demo_files/cell-05-0.png)\n\n"
    code = "print(os.name)\n```\n\n"
    page.write_text(page.read_text().replace(code, code + shown))
    folder.mkdir()
    (folder / "cell-05-0.png").touch()
    source.write_text(PERCENT.replace("Text.", "Other text."), encoding="utf-8")
    write(build(source))
    assert shown in page.read_text()
    assert list(folder.iterdir())
    source.write_text(PERCENT.replace("os.name", "os.sep"), encoding="utf-8")
    write(build(source))
    assert shown not in page.read_text()
    assert not list(folder.iterdir())
