"""Generated documentation is what the code says today."""

from __future__ import annotations

import subprocess
import sys

from tests.sources import ROOT


def test_the_poptorch_page_is_up_to_date() -> None:
    script = ROOT / "docs" / "generate.py"
    done = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert done.returncode == 0, "run: python docs/generate.py"
