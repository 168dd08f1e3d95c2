"""Small programs in the dialects of all releases, each as it was written then.

A program computes with Popple and with plain numpy or TensorFlow, and asserts that both
agree; so it has passed when it ends.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.sources import SRC

pytest.importorskip("tensorflow")

HERE = Path(__file__).parent / "tensorflow"
START = (SRC / "popple_tensorflow.pth").read_text()
PROGRAMS = sorted(
    path.relative_to(HERE).as_posix()
    for path in HERE.glob("*/*.py")
    if not path.name.startswith("_")
)


@functools.cache
def output_of(folder: str, *programs: str) -> str:
    """What the programs of a folder print, in a Python of their own."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "POPPLE_START": START}
    for name in ("TF_POPLAR_FLAGS", "TF_USE_LEGACY_KERAS", "POPPLE_TENSORFLOW"):
        environment.pop(name, None)
    command = [sys.executable, str(HERE / "run_programs.py"), *programs]
    with tempfile.TemporaryDirectory() as own:
        environment["TMPDIR"] = own  # and with it a pod of their own
        done = subprocess.run(
            command, env=environment, cwd=HERE / folder, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


def folder_of(program: str) -> tuple[str, ...]:
    folder = program.partition("/")[0]
    same = [each for each in PROGRAMS if each.startswith(f"{folder}/")]
    return folder, *(each.partition("/")[2] for each in same)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_program_gets_the_numbers_of_plain_tensorflow(program: str) -> None:
    name = program.partition("/")[2]
    printed = output_of(*folder_of(program))
    failure = printed.partition(f"failed {name}")[2].partition(f"end of {name}")[0]
    assert f"ok {name}\n" in printed, failure or printed
