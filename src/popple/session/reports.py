"""Reports of programs: whether one is wanted, where it goes, which runs it shows.

The engine options autoReport.* ask for reports as the vendor's stack does; `popple run
--report` asks for one of every program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from popple.session.settings import Settings

_PROFILES = (
    "autoReport.all",
    "autoReport.outputGraphProfile",
    "autoReport.outputExecutionProfile",
)
_RUNS_SHOWN = ("autoReport.all", "autoReport.outputExecutionProfile")
_MAX_RUNS = "autoReport.executionProfileProgramRunCount"
_DEFAULT_MAX_RUNS = "2"

Write = Callable[[Path, int], object]
"""Writes a report with so many runs into a directory."""


@dataclass
class ProgramReport:
    """The report of one program: where it lies and how many runs it may show.

    What a program costs is known before it runs, so the report of a program that has
    not run yet shows a run already. One that was removed is not written again.
    """

    directory: Path
    max_runs: int
    write: Write = field(repr=False)
    num_runs: int = 0

    def begin(self) -> None:
        """Write it for the first time."""
        self.write(self.directory, 1)

    def add_run(self) -> None:
        """The program runs once more; the report shows that up to its limit."""
        self.num_runs += 1
        if 1 < self.num_runs <= self.max_runs and self._is_there():
            self.write(self.directory, self.num_runs)

    def _is_there(self) -> bool:
        return (self.directory / "profile.pop").exists()


def find_report(
    name: str,
    engine: Mapping[str, str],
    settings: Settings,
    write: Write,
    own_name: Callable[[], str] | None = None,
) -> ProgramReport | None:
    """The report of the program `name`, or None if nobody wants one.

    Engine options name a parent directory, in which the report is called `name` and
    replaces the one of an earlier run; a facade whose programs each have a directory
    of their own gives that in `own_name`. Under `popple run` reports of one process
    never replace each other.
    """
    if any(_is_on(engine, key) for key in _PROFILES):
        parent = Path(engine.get("autoReport.directory") or ".")
        path = parent / name if own_name is None else _unused(parent / own_name())
        return ProgramReport(path, _max_runs(engine), write)
    if settings.report is not None:
        return ProgramReport(_unused(settings.report / name), 1, write)
    return None


def _is_on(engine: Mapping[str, str], key: str) -> bool:
    return engine.get(key, "").lower() == "true"


def _max_runs(engine: Mapping[str, str]) -> int:
    """Runs to show: one where only the graph was asked for."""
    is_execution = any(_is_on(engine, key) for key in _RUNS_SHOWN)
    return int(engine.get(_MAX_RUNS, _DEFAULT_MAX_RUNS)) if is_execution else 1


# Directories given out by this process: a second program of the same name gets one of
# its own, also while the report of the first is not written yet.
_GIVEN_OUT: set[Path] = set()


def _unused(directory: Path) -> Path:
    """The directory, numbered if a program of this process has it already."""
    free, number = directory, 2
    while free in _GIVEN_OUT:
        free, number = directory.with_name(f"{directory.name}_{number}"), number + 1
    _GIVEN_OUT.add(free)
    return free
