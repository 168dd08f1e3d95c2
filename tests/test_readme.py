"""What the README shows is run: its Python blocks and the commands it names.

All ```python blocks run in order as one script in an empty directory. Everything else
is blanked, so a traceback names the README's own line.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests import offline
from tests.sources import ROOT

README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.exists(), reason="there is no README yet")


def keep_python(markdown: str) -> str:
    """The text with every line outside a ```python block made empty."""
    kept: list[str] = []
    is_python = False
    for line in markdown.splitlines():
        is_fence = line.startswith("```")
        kept.append(line if is_python and not is_fence else "")
        is_python = line.strip() == "```python" if is_fence else is_python
    return "\n".join(kept) + "\n"


def named_make_targets(markdown: str) -> set[str]:
    return set(re.findall(r"^\s*(?:\$ )?make ([a-z]+)", markdown, re.MULTILINE))


def test_blocks_run_in_order(tmp_path: Path) -> None:
    script = tmp_path / "README.py"
    script.write_text(keep_python(README.read_text(encoding="utf-8")), encoding="utf-8")
    done = subprocess.run(
        offline.command(script), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_named_make_targets_exist() -> None:
    rules = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert named_make_targets(README.read_text(encoding="utf-8")) <= set(rules)


def test_links_lead_somewhere() -> None:
    text = README.read_text(encoding="utf-8")
    local = re.findall(r"\]\((?!\w+:|#)([^)#]+)", text)
    assert [link for link in local if not (ROOT / link).exists()] == []


def test_only_python_blocks_are_kept() -> None:
    text = "a\n```python\nx = 1\n```\n```console\n$ make demo\n```\n"
    assert keep_python(text) == "\n\nx = 1\n\n\n\n\n"
    assert named_make_targets(text) == {"demo"}
