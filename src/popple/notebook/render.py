"""The three products of a source: notebook, page and program.

In: the notebook that a source describes. Out: texts. They depend on the source alone,
so that a build can be compared with what is there; only a page that was executed has
more: outputs, and pictures in a folder beside it.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from popple.notebook.code import is_magic
from popple.notebook.source import TAGS

if TYPE_CHECKING:
    from nbformat import NotebookNode

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_OUTPUT = re.compile(r"^```output\n.*?^```\n\n", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"^```i?python\n(?:(?!```)[^\n]*\n)*```\n\n", re.MULTILINE)
_SHOWN = re.compile(
    rf"(?P<code>{_CODE.pattern})(?P<shown>(?:{_OUTPUT.pattern}|^!\[Figure\][^\n]*\n\n)+)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Page:
    """A page of Markdown, and the pictures that it shows by path."""

    text: str
    pictures: Mapping[str, bytes] = field(default_factory=dict)


def digest_of(source: str) -> str:
    """A fingerprint of a source, the same on every system."""
    return hashlib.sha256(source.encode("utf-8")).hexdigest()[:16]


def _has(cell: NotebookNode, tag: str) -> bool:
    return tag in cell.metadata.get("tags", [])


def render_notebook(notebook: NotebookNode, name: str) -> str:
    """The notebook without outputs; its second cell says what it was made from."""
    import nbformat
    from nbformat import v4

    cells = [_bare(cell) for cell in notebook.cells if not _has(cell, "ignore_jupyter")]
    note = v4.new_markdown_cell(f"*Notebook generated from {name}*")
    cells.insert(1, note)
    for number, cell in enumerate(cells, start=1):
        cell["id"] = f"cell-{number:02d}"
    fresh = v4.new_notebook(cells=cells, metadata=notebook.metadata)
    return nbformat.writes(fresh) + "\n"


def _bare(cell: NotebookNode) -> NotebookNode:
    """A cell as it is before it runs, without the tags that only a build reads."""
    from nbformat import v4

    tags = [tag for tag in cell.metadata.get("tags", []) if tag not in TAGS]
    make = v4.new_markdown_cell if cell.cell_type == "markdown" else v4.new_code_cell
    return make(cell.source, metadata={"tags": tags} if tags else {})


def render_program(notebook: NotebookNode, name: str, digest: str) -> str:
    """The code alone, magics left out."""
    parts = [f"# {_copyright_of(notebook)}", f"# {_generated_from(name)}"]
    for cell in notebook.cells:
        code = _python_of(cell)
        if code and not _has(cell, "ignore_code_only"):
            parts.append(_gap(parts, code) + code)
    parts.append(f"# {_footer(name, digest)}")
    return "\n\n".join(parts) + "\n"


def _python_of(cell: NotebookNode) -> str:
    if cell.cell_type != "code":
        return ""
    lines = [line for line in cell.source.splitlines() if not is_magic(line)]
    return "\n".join(lines).strip("\n")


def _gap(parts: list[str], code: str) -> str:
    """One more empty line around functions and classes, as Python's style has it."""
    return "\n" if _is_defined(code, 0) or _is_defined(parts[-1], -1) else ""


def _is_defined(code: str, index: int) -> bool:
    body = ast.parse(code).body
    return bool(body) and isinstance(body[index], ast.FunctionDef | ast.ClassDef)


def render_page(notebook: NotebookNode, name: str, digest: str, files: str) -> Page:
    """The page that people read on the web; `files` is the folder of its pictures."""
    pictures: dict[str, bytes] = {}
    parts = [
        f"<!-- {_copyright_of(notebook)} -->\n<!-- {_generated_from(name)} -->",
    ]
    for number, cell in enumerate(notebook.cells[1:], start=2):
        if _has(cell, "ignore_md"):
            continue
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(_fence(cell.source))
        for text, picture in _outputs(cell, f"{files}/cell-{number:02d}"):
            parts.append(text)
            pictures.update(picture)
    parts.append(f"<!-- {_footer(name, digest)} -->")
    return Page("\n\n".join(parts) + "\n", pictures)


def _fence(code: str) -> str:
    language = "ipython" if any(map(is_magic, code.splitlines())) else "python"
    return f"```{language}\n{code}\n```"


def _outputs(cell: NotebookNode, stem: str) -> Iterator[tuple[str, dict[str, bytes]]]:
    """What a cell printed and drew, for a page."""
    if _has(cell, "hide_output"):
        return
    for index, output in enumerate(cell.get("outputs", [])):
        data: Mapping[str, Any] = output.get("data", {})
        if "image/png" in data:
            path = f"{stem}-{index}.png"
            yield f"![Figure]({path})", {path: base64.b64decode(data["image/png"])}
        elif output.get("name") != "stderr":
            text = output.get("text") or data.get("text/plain", "")
            clean = without_colours(text).replace("```", "'''").rstrip()
            if clean:
                yield f"```output\n{clean}\n```", {}


def without_colours(text: str) -> str:
    """What a terminal would colour, plain."""
    return _ANSI.sub("", text)


def without_outputs(page: str, files: str) -> str:
    """A page as it was before outputs were put in."""
    text = _OUTPUT.sub("", page)
    return re.sub(
        rf"^!\[Figure\]\({re.escape(files)}/[^)]*\)\n\n", "", text, flags=re.M
    )


def with_outputs_of(old: str, page: str) -> str:
    """A page with what an earlier one shows after code that is still the same."""
    known = {found["code"]: found["shown"] for found in _SHOWN.finditer(old)}
    return _CODE.sub(lambda found: found[0] + known.get(found[0], ""), page)


def _copyright_of(notebook: NotebookNode) -> str:
    """The first line of the first cell."""
    return notebook.cells[0].source.strip().splitlines()[0]


def _generated_from(name: str) -> str:
    return f"Generated by 'popple notebook build' from {name}: edit that file."


def _footer(name: str, digest: str) -> str:
    return f"Source: {name} sha256: {digest}"
