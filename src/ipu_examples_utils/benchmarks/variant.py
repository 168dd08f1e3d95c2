"""One variant of a benchmark: its command, environment, process and logs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

from popple.errors import UsageError

from .options import LEVELS
from .spec import Variant

_MONITOR_SECONDS = 5
_PYTHONS = frozenset({"python", "python3"})
_TIMED_OUT = 124


@dataclass(frozen=True)
class Outcome:
    """What became of a command."""

    stdout: str
    stderr: str
    exitcode: int
    started: datetime
    ended: datetime

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.ended - self.started).total_seconds()


def make_command(variant: Variant, arguments: Namespace) -> str:
    """The command of a variant as one line, as the spec has it."""
    try:
        command = variant.benchmark.command.format(**variant.parameters)
    except (KeyError, IndexError) as error:
        raise UsageError(
            f"The command has the name {error} in braces, which is no parameter.",
            where=f"benchmark {variant.benchmark.name}",
        ) from error
    if arguments.compile_only:
        command += " --compile-only"
    allows_wandb = arguments.allow_wandb or variant.benchmark.fields.get("allow_wandb")
    if not allows_wandb or arguments.compile_only:
        command = without_wandb(command)
    return " ".join(command.split())


def without_wandb(command: str) -> str:
    """The command without arguments named after wandb, and without their values."""
    return re.sub(r"\s--?[\w-]*wandb[\w-]*(=\S+|\s+(?!-)\S+)?", "", command)


def make_environment(
    variant: Variant, arguments: Namespace, environ: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a variant: log levels, profiles, what the spec sets."""
    level = LEVELS[arguments.logging]
    found = dict(environ)
    found.update({"POPLAR_LOG_LEVEL": level, "POPART_LOG_LEVEL": level})
    # Commands of this installation, poprun among them, are found without activation.
    scripts = str(Path(sys.executable).parent)
    found["PATH"] = os.pathsep.join([scripts, found.get("PATH", os.defpath)])
    if arguments.profile:
        options = {
            "autoReport.all": "true",
            "autoReport.directory": f"./{variant.name}",
        }
        found["POPLAR_ENGINE_OPTIONS"] = json.dumps(options)
    own: Mapping[str, object] = variant.benchmark.fields.get("env") or {}
    found.update({name: str(value) for name, value in own.items()})
    return found


def split_command(command: str, environ: Mapping[str, str]) -> list[str]:
    """The words of a command, variables replaced, with this Python as its Python."""
    expanded = re.sub(
        r"\$(?:\{(\w+)\}|(\w+))",
        lambda match: environ.get(match[1] or match[2], match[0]),
        command,
    )
    return [sys.executable if w in _PYTHONS else w for w in shlex.split(expanded)]


def run_variant(
    words: list[str],
    directory: Path,
    environ: Mapping[str, str],
    timeout: float | None,
    listener: TextIO,
) -> Outcome:
    """Run a command to its end; all it writes also goes to `listener`."""
    started = datetime.now()
    try:
        process = subprocess.Popen(
            words,
            cwd=directory,
            env=dict(environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="backslashreplace",
        )
    except OSError as error:
        return Outcome("", f"{words[0]}: {error}\n", 127, started, datetime.now())
    try:
        stdout, stderr = process.communicate(timeout=timeout)
        exitcode = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
        stderr += f"\nTimeout ({timeout})\n"
        exitcode = _TIMED_OUT
    listener.write(stdout + stderr)
    listener.flush()
    return Outcome(stdout, stderr, exitcode, started, datetime.now())


class Monitor:
    """Runs gc-monitor every few seconds beside a command; use it as a context."""

    def __init__(self, environ: Mapping[str, str], path: Path) -> None:
        self._program = shutil.which("gc-monitor", path=environ.get("PATH"))
        if self._program is None:
            raise UsageError("--gc-monitor needs gc-monitor on the PATH.")
        self._path = path
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        with self._path.open("w", encoding="utf-8") as file:
            while True:
                file.write(self._ask() + "\n")
                if self._is_over.wait(_MONITOR_SECONDS):
                    return

    def _ask(self) -> str:
        """One line of JSON: what gc-monitor says, and when."""
        command = [str(self._program), "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        now = f"{datetime.now():%Y-%m-%d-%H.%M.%S.%f}"
        try:
            return json.dumps({"timestamp": now, **json.loads(done.stdout)})
        except ValueError:
            return json.dumps({"timestamp": now, "error": done.stderr})
