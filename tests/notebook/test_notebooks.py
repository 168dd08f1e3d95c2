"""Popple's own notebooks: current, within the rules, and they run.

Each runs top to bottom on four and on sixteen virtual IPUs, in a directory of its own
for locks and files, where `gc-monitor` shows nothing afterwards.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from popple.notebook.building import list_stale
from popple.notebook.checking import Request, check_files
from tests.sources import ROOT

HOME = ROOT / "notebooks"
NOTEBOOKS = sorted(HOME.glob("*/*.ipynb"))


def test_there_are_six() -> None:
    assert len(NOTEBOOKS) == 6


def test_products_are_what_their_sources_give() -> None:
    assert list_stale([HOME]) == []


def test_no_rule_is_broken() -> None:
    outcome = check_files(Request((HOME,)), {})
    assert [(each.rule.id, each.path, each.spot) for each in outcome.findings] == []
    # A silence that silences nothing is one that nobody needs any more.
    assert all(outcome.silenced.values())


MONITOR = "import sys; from popple.tools.gc.monitor import main; sys.exit(main())"


@pytest.mark.parametrize("ipus", [4, 16])
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_gives_its_ipus_back(
    notebook: Path, ipus: int, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "GRAPHCORE_POD_TYPE": f"pod{ipus}",
        "NUM_AVAILABLE_IPU": str(ipus),
        "OMP_NUM_THREADS": "1",
        "POPLAR_EXECUTABLE_CACHE_DIR": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path),
    }

    def run(*words: str) -> str:
        command = [sys.executable, *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    printed = run("-m", "popple.tools.cli", "notebook", "run", str(notebook))
    assert "passed in" in printed
    monitored = run("-c", MONITOR)
    assert f"No attached processes in partition pod{ipus}" in monitored
