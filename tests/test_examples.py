"""Every `examples/x.py` runs, and prints what `examples/x.out` says.

A line of the .out file that begins with `~` is a regular expression, for numbers that
differ from machine to machine (wall speed, paths); all others are compared exactly.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests import offline
from tests.sources import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def is_match(expected: str, printed: str) -> bool:
    if expected.startswith("~"):
        return bool(re.fullmatch(expected[1:].strip(), printed.strip()))
    return expected.rstrip() == printed.rstrip()


def find_difference(expected: str, printed: str) -> str | None:
    """The first line that differs, as a sentence, or None."""
    wanted, found = expected.splitlines(), printed.splitlines()
    for number, (want, have) in enumerate(zip(wanted, found, strict=False), start=1):
        if not is_match(want, have):
            return f"line {number}: expected {want!r}, printed {have!r}"
    if len(wanted) != len(found):
        return f"expected {len(wanted)} lines, printed {len(found)}"
    return None


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_prints_its_out_file(script: Path, tmp_path: Path) -> None:
    # Threads that wait for each other on a busy computer make minutes of seconds. IPUs
    # are locked in the directory of temporary files: each example has a pod of its own.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        offline.command(script),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    expected = script.with_suffix(".out").read_text(encoding="utf-8")
    assert find_difference(expected, done.stdout) is None, done.stdout


def test_every_out_file_has_a_script() -> None:
    outs = {path.stem for path in (ROOT / "examples").glob("*.out")}
    assert outs <= {path.stem for path in EXAMPLES}


@pytest.mark.parametrize("page", ["README.md", "examples/README.md"])
def test_every_example_is_listed(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^):#]+\.(?:py|toml))\)", text)
    paths = {(ROOT / page).parent / link for link in links}
    assert set(EXAMPLES) <= paths
    assert [path for path in paths if not path.exists()] == []


def test_a_tilde_line_is_a_pattern() -> None:
    assert find_difference("a\n~ speed: \\d+/s\n", "a\nspeed: 42/s\n") is None


@pytest.mark.parametrize(
    ("expected", "printed", "difference"),
    [
        ("a\nb\n", "a\nc\n", "line 2: expected 'b', printed 'c'"),
        ("~ \\d+\n", "x\n", "line 1: expected '~ \\\\d+', printed 'x'"),
        ("a\n", "a\nb\n", "expected 1 lines, printed 2"),
    ],
)
def test_a_difference_is_named(expected: str, printed: str, difference: str) -> None:
    assert find_difference(expected, printed) == difference
