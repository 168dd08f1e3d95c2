"""Programs that are killed leave devices and caches as if they had never been."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources import ROOT

# `python -m tests.poptorch.killed_programs DIRECTORY 200 SEED` is the long form.
KILLS = 12


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc")
def test_programs_are_killed_while_they_attach_compile_write_and_run(
    tmp_path: Path,
) -> None:
    module = "tests.poptorch.killed_programs"
    done = subprocess.run(
        [sys.executable, "-m", module, str(tmp_path), str(KILLS), "14"],
        env={**os.environ, "POPPLE_STATE": str(tmp_path / "state")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["violations"] == seen["leaked"] == seen["left in the cache"] == []
    assert seen["endings"] == [-9]
    # Aimed at the moment that was hit least, though a moment may be over by then.
    assert sum(seen["hits"].values()) == KILLS
    assert {"attach", "compile", "cache write", "run"} <= set(seen["hits"])
