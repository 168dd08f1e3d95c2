"""Generated documentation is what the code says today."""

from __future__ import annotations

import re
import subprocess
import sys

from popple.target import list_chips
from tests.sources import ROOT, sources_of_product

# How the product reads a variable by its name.
READS = re.compile(r"""environ(?:\.get)?[(\[]\s*"([A-Z][A-Z0-9_]+)\"""")


def test_generated_pages_are_up_to_date() -> None:
    script = ROOT / "docs" / "generate.py"
    done = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert done.returncode == 0, "run: python docs/generate.py"


def test_every_constant_of_every_chip_has_a_row_with_its_source() -> None:
    page = (ROOT / "docs" / "cost_model.md").read_text(encoding="utf-8")
    rows = [row.split(" | ") for row in page.splitlines() if row.startswith("| `")]
    listed = {(row[0].strip("| `"), row[-1].rstrip(" |")) for row in rows}
    for chip in list_chips():
        assert set(chip.sources) <= listed, chip.name


def test_every_variable_that_is_read_is_listed() -> None:
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    read = {name for s in sources_of_product() for name in READS.findall(s.text)}
    # The shell's own, a sanitiser's and TensorFlow's.
    foreign = {"ASAN_OPTIONS", "PATH", "PYTHONPATH", "TF_CONFIG"}
    assert {name for name in read - foreign if f"`{name}`" not in page} == set()
