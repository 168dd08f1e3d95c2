"""What the pages show is run: their Python blocks, and the commands they name.

All ```python blocks of a page run in order as one script in an empty directory.
Everything else is blanked, so a traceback names the page's own line. The pages of
notebooks are made from notebooks, which have tests of their own.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from popple.tools.cli import build_parser
from tests import offline
from tests.sources import ROOT

PAGES = [
    path
    for pattern in ("*.md", "docs/*.md", "docs/decisions/*.md", "examples/*.md")
    for path in sorted(ROOT.glob(pattern))
    if not path.name.endswith(".in.md")
]
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in PAGES}
WITH_PYTHON = [name for name, text in TEXTS.items() if "\n```python\n" in text]

# A command of a block: what follows the prompt, up to a comment or another command.
COMMAND = re.compile(r"^(?:\$ )?(popple [^#&|\n]+)", re.MULTILINE)


def keep_python(markdown: str) -> str:
    """The text with every line outside a ```python block made empty."""
    kept: list[str] = []
    is_python = False
    for line in markdown.splitlines():
        is_fence = line.startswith("```")
        kept.append(line if is_python and not is_fence else "")
        is_python = line.strip() == "```python" if is_fence else is_python
    return "\n".join(kept) + "\n"


def keep_console(markdown: str) -> str:
    """The blocks in which something is typed into a terminal."""
    return "".join(re.findall(r"^```(?:console)?\n(.*?)^```$", markdown, re.M | re.S))


def named_make_targets(markdown: str) -> set[str]:
    return set(re.findall(r"^(?:\$ )?make ([a-z]+)", keep_console(markdown), re.M))


def named_commands(markdown: str) -> list[str]:
    """What `popple` is asked for."""
    return COMMAND.findall(keep_console(markdown))


@pytest.mark.parametrize("name", WITH_PYTHON)
def test_blocks_run_in_order(name: str, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(keep_python(TEXTS[name]), encoding="utf-8")
    done = subprocess.run(
        offline.command(script),
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", TEXTS)
def test_named_make_targets_exist(name: str) -> None:
    rules = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert named_make_targets(TEXTS[name]) <= set(rules)


@pytest.mark.parametrize("name", TEXTS)
def test_named_commands_are_understood(name: str) -> None:
    for command in named_commands(TEXTS[name]):
        build_parser().parse_args(shlex.split(command)[1:])


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name: str) -> None:
    # The tracker is no file: a forge shows it beside those of a branch.
    text = TEXTS[name].replace("../issues)", ")")
    local = re.findall(r"(?<!\\)\]\((?!\w+:|#)([^)#\s]+)", text)
    home = (ROOT / name).parent
    assert [link for link in local if not (home / link).exists()] == []


def test_only_python_blocks_are_kept() -> None:
    typed = "```console\n$ popple doctor  # see\n$ make x\n```\n"
    text = f"a\n```python\nx = 1\n```\n{typed}"
    assert keep_python(text) == "\n\nx = 1\n\n\n\n\n\n"
    assert named_make_targets(text) == {"x"}
    assert named_commands(text) == ["popple doctor  "]
