"""Reports of programs: where they go, and which runs they show.

In: what the engine options autoReport.* and `popple run --report` ask for. Out: for
each compiled program a directory with its profile.pop.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tensorflow.python.platform import tf_logging as logging

from popple.errors import PoppleError, UsageError
from tensorflow_ipu._types import IpuOptions

__all__ = ["ProgramReport", "report_for"]

_REPORT_KEYS = (
    "autoReport.all",
    "autoReport.outputGraphProfile",
    "autoReport.outputExecutionProfile",
)
_NUM_RUNS = "autoReport.executionProfileProgramRunCount"
_DEFAULT_NUM_RUNS = "2"

# Writes a report with so many runs into a directory.
_Write = Callable[[Path, int], None]


@dataclass
class ProgramReport:
    """The report of one program; it shows the runs up to a limit.

    What the program costs is known before it runs, so the report of a program that has
    not run yet shows a run already. One that was removed is not written again.
    """

    program: str
    directory: Path
    max_runs: int
    write: _Write = field(repr=False)
    num_runs: int = 0

    def begin(self) -> None:
        """Write it; a program that cannot be modelled runs all the same."""
        try:
            self.write(self.directory, 1)
        except PoppleError as error:
            logging.warning(f"No report was written for {self.program}: {error}")

    def add_run(self) -> None:
        """The program runs once more."""
        self.num_runs += 1
        # Written anew with one more run: the file format has no way to append.
        if 1 < self.num_runs <= self.max_runs and self._is_there():
            self.write(self.directory, self.num_runs)

    def _is_there(self) -> bool:
        return (self.directory / "profile.pop").exists()


def report_for(name: str, options: IpuOptions, write: _Write) -> ProgramReport | None:
    """The report of the program `name`, or None if nobody wants one.

    `options` are the device's IpuOptions. POPLAR_ENGINE_OPTIONS of the environment
    beats them; `popple run --report` asks for reports of every program.
    """
    given = {item.option: item.value for item in options.compilation_options}
    engine = {**given, **_environment_options()}
    if any(_is_on(engine, key) for key in _REPORT_KEYS):
        parent = Path(engine.get("autoReport.directory") or ".")
        directory = _unused(parent / f"tf_report__{_now()}__{os.getpid()}")
        return ProgramReport(name, directory, _max_runs(engine), write)
    if root := os.environ.get("POPPLE_REPORT"):
        return ProgramReport(
            name, _unused(Path(root) / name.replace("/", "_")), 1, write
        )
    return None


def _is_on(engine: Mapping[str, str], key: str) -> bool:
    return engine.get(key, "").lower() == "true"


def _max_runs(engine: Mapping[str, str]) -> int:
    if _is_on(engine, "autoReport.all") or _is_on(engine, _REPORT_KEYS[2]):
        return int(engine.get(_NUM_RUNS, _DEFAULT_NUM_RUNS))
    return 1


def _now() -> str:
    return f"{datetime.now():%Y-%m-%d__%H-%M-%S-%f}"


def _unused(directory: Path) -> Path:
    """The directory, numbered if there is one of that name."""
    free, number = directory, 2
    while free.exists():
        free, number = directory.with_name(f"{directory.name}_{number}"), number + 1
    return free


def _environment_options() -> dict[str, str]:
    text = os.environ.get("POPLAR_ENGINE_OPTIONS") or "{}"
    try:
        found = dict(json.loads(text))
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"POPLAR_ENGINE_OPTIONS is not a JSON object: {error}.",
            remedy='Write it like {"autoReport.all": "true"}.',
        ) from error
    return {name: str(value) for name, value in found.items()}
