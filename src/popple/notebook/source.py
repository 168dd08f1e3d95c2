"""One source for a notebook: a Python file that can be read, compared and linted.

Two forms are read:

    percent       cells begin with `# %%` or `# %% [markdown]`; read by jupytext
    walkthrough   module-level strings are text, what stands between them is code; an
                  empty string splits two cells; `# %pip ...` is a live magic

In both a cell can be kept out of a product: by the tags `ignore_jupyter`, `ignore_md`
and `ignore_code_only`, and its output by `hide_output`. In a walkthrough the tags are
lines of their own, in code (`# sst_hide_output`) as in text; percent sources may use
those names too. Text is taken as it stands: a backslash of a formula escapes nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from popple.errors import UsageError

if TYPE_CHECKING:
    from nbformat import NotebookNode

TAGS = ("hide_output", "ignore_md", "ignore_jupyter", "ignore_code_only")
_PERCENT = re.compile(r"^# %%", re.MULTILINE)
_TAG_LINE = re.compile(r"^#?\s*sst_(\w+)\W*$")
_MAGIC_LINE = re.compile(r"^#\s*([%!]\S.*)$")
_LITERAL = re.compile(r"^[rRuU]?(\"{3}|'{3})(.*)\1$", re.DOTALL)
_NOTICE = re.compile(r"^(Copyright [^\n]*)\n+(?=\S)")


def read_source(text: str, name: str = "source.py") -> NotebookNode:
    """The notebook that a source describes, with plain tags and ids that stay."""
    cells = list(_percent_cells(text) if is_percent(text) else _walk(text, name))
    cells[:1] = [cut for cell in cells[:1] for cut in _notice_and_rest(cell)]
    if not cells:
        raise UsageError(
            f"{name} has no cells.",
            remedy="Begin cells with '# %%', or put text into strings of the module.",
        )
    return _make_notebook(cells)


def _notice_and_rest(cell: NotebookNode) -> list[NotebookNode]:
    """The copyright notice as a cell of its own, apart from licences of others."""
    found = _NOTICE.match(cell.source)
    if found is None or cell.cell_type != "markdown":
        return [cell]
    texts = (found[1], cell.source[found.end() :])
    return [
        _make_cell("markdown", text, cell.metadata.get("tags", [])) for text in texts
    ]


def is_percent(text: str) -> bool:
    return bool(_PERCENT.search(text))


def _percent_cells(text: str) -> Iterator[NotebookNode]:
    import jupytext

    for cell in jupytext.reads(text, fmt="py:percent").cells:
        tags = [_plain(tag) for tag in cell.metadata.get("tags", [])]
        if cell.source.strip():
            yield _make_cell(cell.cell_type, cell.source.strip("\n"), tags)


def _plain(tag: str) -> str:
    return tag.removeprefix("sst_")


def _walk(text: str, name: str) -> Iterator[NotebookNode]:
    """The cells of a walkthrough, by the lines that its strings take."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise UsageError(
            f"{name}, line {error.lineno}, is no Python: {error.msg}.",
            remedy="A source is a Python file; write magics as comments: '# %pip ...'.",
        ) from error
    lines = text.splitlines()
    position = 0
    for node in tree.body:
        words = _text_of(node, text)
        if words is None:
            continue
        yield from _tagged_cell("code", map(_live, lines[position : node.lineno - 1]))
        yield from _tagged_cell("markdown", words.strip().splitlines())
        position = node.end_lineno or node.lineno
    yield from _tagged_cell("code", map(_live, lines[position:]))


def _text_of(node: ast.stmt, source: str) -> str | None:
    """What stands between the quotes of a string that is a statement."""
    found = node.value if isinstance(node, ast.Expr) else None
    if not (isinstance(found, ast.Constant) and isinstance(found.value, str)):
        return None
    literal = _LITERAL.match(ast.get_source_segment(source, found) or "")
    return literal[2] if literal else found.value


def _tagged_cell(kind: str, lines: Iterable[str]) -> Iterator[NotebookNode]:
    """A cell without the lines that are tags; none if nothing is left."""
    given = list(lines)
    tags = [found[1] for line in given if (found := _TAG_LINE.match(line))]
    kept = [line for line in given if not _TAG_LINE.match(line)]
    source = "\n".join(kept).strip("\n").rstrip()
    if source:
        yield _make_cell(kind, source, tags)


def _live(line: str) -> str:
    """A magic that is commented out, so that the source stays Python."""
    found = _MAGIC_LINE.match(line)
    return found[1] if found else line


def _make_cell(kind: str, source: str, tags: list[str]) -> NotebookNode:
    from nbformat import v4

    make = v4.new_markdown_cell if kind == "markdown" else v4.new_code_cell
    return make(source, metadata={"tags": tags} if tags else {})


def _make_notebook(cells: list[NotebookNode]) -> NotebookNode:
    """Ids are numbers: random ones would make every build a change."""
    from nbformat import v4

    for number, cell in enumerate(cells, start=1):
        cell["id"] = f"cell-{number:02d}"
    metadata = {"language_info": {"name": "python"}}
    return v4.new_notebook(cells=cells, metadata=metadata)
