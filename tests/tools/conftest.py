"""The `popple` command as a user calls it: a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

Done: TypeAlias = "subprocess.CompletedProcess[str]"
Popple: TypeAlias = Callable[..., Done]


@pytest.fixture
def popple(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Popple:
    """Runs `popple` with the given words in an empty directory."""
    for name in ("POPPLE_TARGET", "POPPLE_REPORT", "POPPLE_QUIET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("POPLAR_EXECUTABLE_CACHE_DIR", str(tmp_path / "executables"))

    def call(*words: str | Path) -> Done:
        command = [sys.executable, "-m", "popple.tools.cli", *map(str, words)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return call


@pytest.fixture
def write_script(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a user's script and says where it lies."""

    def write(text: str) -> Path:
        path = tmp_path / "script.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write
