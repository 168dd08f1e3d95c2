"""No chip is held twice and none is lost, whenever processes are killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.device import competition

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="asks /proc who is alive"
)


def test_200_kills_while_four_processes_compete_for_four_chips(tmp_path: Path) -> None:
    command = [sys.executable, competition.__file__, str(tmp_path), "200", "14"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert json.loads(done.stdout) == {
        "violations": [],
        "leaked": [],
        "endings": [-9],
        "chips": ["0", "1", "2", "3"],
        "last": 6,
    }


def test_the_witness_sees_two_holders(tmp_path: Path) -> None:
    witness = competition.Witness(tmp_path / "witness")
    witness.sign(0)
    witness.sign(0)
    assert len(witness.lines("violations")) == 1


def test_the_witness_knows_the_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert not competition.is_alive(process.pid)
