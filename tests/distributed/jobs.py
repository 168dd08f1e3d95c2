"""Runs small programs by poprun, as users do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

POPRUN = (sys.executable, "-m", "popple.tools.poprun")


def command(program: str, *options: str, arguments: Sequence[str] = ()) -> list[str]:
    """The command line for a program given as text."""
    return [*POPRUN, *options, sys.executable, "-c", program, *arguments]


def instances(count: int, replicas: int = 0) -> list[str]:
    """The options for this many instances; one replica each if nothing is said."""
    return [f"--num-instances={count}", f"--num-replicas={replicas or count}"]


def poprun(
    program: str,
    *options: str,
    arguments: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program given as text and wait for it."""
    return subprocess.run(
        command(program, *options, arguments=arguments),
        capture_output=True,
        text=True,
        env=environ,
        cwd=directory,
    )
