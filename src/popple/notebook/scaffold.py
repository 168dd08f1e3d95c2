"""Makes the folder of a new notebook: source, requirements, badge, products."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

from popple.errors import UsageError
from popple.files import write_atomically
from popple.notebook.build import build, write
from popple.notebook.template import render_files, render_source


def create(name: str, directory: Path, title: str, owner: str) -> list[Path]:
    """Write `directory/name/name.py` and what belongs to it; never over another."""
    if not re.fullmatch(r"[A-Za-z]\w*", name):
        raise UsageError(
            f"{name!r} is no name for a notebook.",
            remedy="Use letters, digits and underscores: it names a Python file.",
        )
    home = directory / name
    if home.exists():
        raise UsageError(f"{home} exists already.", remedy="Choose another name.")
    home.mkdir(parents=True)
    year = date.today().year
    source = home / f"{name}.py"
    texts = {source.name: render_source(title, year, owner), **render_files()}
    for file, text in texts.items():
        write_atomically(home / file, text)
    return [*(home / file for file in texts), *write(build(source))]
