"""Installed packages and programs and their versions, found without importing them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version


def find_version(distribution: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def find_program(names: Sequence[str]) -> str | None:
    """The path of the first program on PATH, or None."""
    return next(filter(None, map(shutil.which, names)), None)


def ask_version(program: str) -> str:
    """The first line a program prints for `--version`, or why it printed none."""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not start: {error}"
    lines = done.stdout.strip().splitlines()
    return lines[0] if lines else f"does not start: status {done.returncode}"
