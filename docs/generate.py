"""Writes the parts of the documentation that are read off the code.

    python docs/generate.py            rewrite docs/poptorch.md
    python docs/generate.py --check    fail if it is out of date

The page is the text of `docs/poptorch.in.md` with its tables filled in.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path

import poptorch
from poptorch._translate import TRANSLATED, WITHOUT_EFFECT

HERE = Path(__file__).parent
SOURCE, PAGE = HERE / "poptorch.in.md", HERE / "poptorch.md"


def render_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def option_rows() -> list[tuple[str, ...]]:
    """Every option: whether it does something, and what."""
    rows = [(f"`{name}`", "yes", text) for name, text in TRANSLATED.items()]
    rows += [(f"`{name}`", "no effect", text) for name, text in WITHOUT_EFFECT.items()]
    return sorted(rows)


def name_rows() -> list[tuple[str, ...]]:
    """Every public name of the package with the first line of its documentation."""
    rows: list[tuple[str, ...]] = []
    for name in sorted(poptorch.__all__, key=str.lower):
        value = getattr(poptorch, name)
        if not name.startswith("__"):
            rows.append((f"`{name}`", kind_of(value), summary_of(value)))
    return rows


def kind_of(value: object) -> str:
    """What sort of name it is."""
    if inspect.ismodule(value):
        return "module"
    return "class" if inspect.isclass(value) else "function"


def summary_of(value: object) -> str:
    """The first line of the documentation, safe inside a table."""
    lines = (inspect.getdoc(value) or "").splitlines() or [""]
    return lines[0].replace("|", "\\|")


def render_page() -> str:
    """The page with its tables."""
    text = SOURCE.read_text(encoding="utf-8")
    options = render_table(("option", "supported", "what becomes of it"), option_rows())
    names = render_table(("name", "kind", "what it is"), name_rows())
    return text.replace("{{options}}", options).replace("{{names}}", names)


def main() -> int:
    """Write the page, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    page = render_page()
    if parser.parse_args().check:
        is_current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page
        return 0 if is_current else 1
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
