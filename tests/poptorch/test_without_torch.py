"""Without PyTorch, the import says what to install."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["torch"] = None
try:
    import poptorch
except ModuleNotFoundError as error:
    print(error.name, error)
"""


def test_the_import_says_what_to_install() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("torch PopTorch programs need PyTorch")
    assert "pip install 'popple[torch]'" in done.stdout
    assert "https://download.pytorch.org/whl/cpu" in done.stdout
