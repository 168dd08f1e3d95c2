"""The modelled cost of a program on its target, computed once on request; its report.

Running a program never waits for the model, nor for importing planner and simulator.
Reports, cycle counts and `popple.modelled` ask. The engine options autoReport.* ask for
reports as the vendor's stack does; `popple run --report` asks for one of every program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from popple.graph import Graph
from popple.session.collection import collection_paused
from popple.session.kept import KeptProgram
from popple.session.settings import Settings
from popple.target import Target

if TYPE_CHECKING:
    from popple.case import Case
    from popple.options import ModelOptions
    from popple.pipeline import Modelled

_PROFILES = (
    "autoReport.all",
    "autoReport.outputGraphProfile",
    "autoReport.outputExecutionProfile",
)
_RUNS_SHOWN = ("autoReport.all", "autoReport.outputExecutionProfile")
# Poplar's names, and its default of two runs in an execution profile.
_MAX_RUNS = "autoReport.executionProfileProgramRunCount"
_DEFAULT_MAX_RUNS = "2"

NameComputeSet = Callable[[str], str]
"""The name that users of a facade know a compute set by."""


@dataclass(frozen=True)
class CostRequest:
    """A captured graph, how it is placed and planned, and the machine.

    `name_compute_sets` gives, for the placed graph, the compute sets of a report the
    names that users of the facade know. `rebatch` captures the program again with
    another number of samples in a micro-batch, where a facade can.
    """

    graph: Graph
    options: ModelOptions
    target: Target
    framework: str
    framework_version: str
    name_compute_sets: Callable[[Graph], NameComputeSet] | None = None
    rebatch: Callable[[int], CostRequest] | None = None

    @property
    def case(self) -> Case:
        """What can be modelled again with changes."""
        from popple.case import Case

        rebatch = self.rebatch
        if rebatch is None:
            return Case(self.graph, self.target, self.options, self.framework)

        def again(size: int) -> Case:
            return rebatch(size).case

        return Case(self.graph, self.target, self.options, self.framework, again)


class ModelledCost:
    """The modelled cost of one program; `ask` says what to model when it is wanted.

    `kept` is the program's entry in an executable cache, if it has one: cycles and
    reports that are there are not modelled again.
    """

    def __init__(
        self, ask: Callable[[], CostRequest], kept: KeptProgram | None = None
    ) -> None:
        self._ask = ask
        self._request: CostRequest | None = None
        self._modelled: Modelled | None = None
        self._kept = kept
        self._cycles: int | None = kept.cycles if kept is not None else None

    @property
    def request(self) -> CostRequest:
        """What is modelled, how, and on what machine."""
        if self._request is None:
            self._request = self._ask()
        return self._request

    def cycles(self) -> int:
        """Cycles of one call."""
        if self._cycles is None:
            self._cycles = self.modelled().simulation.cost.cycles
            if self._kept is not None:
                self._kept.keep_cycles(self._cycles)
        return self._cycles

    @collection_paused()
    def modelled(self) -> Modelled:
        """Graph, program and simulation of one call."""
        if self._modelled is None:
            # Planner and simulator are imported here: a program that only runs never
            # needs them.
            from popple.pipeline import model_graph

            request = self.request
            self._modelled = model_graph(request.graph, request.target, request.options)
        return self._modelled

    @collection_paused()
    def write_report(self, directory: Path, num_runs: int = 1) -> Path:
        """Write profile.pop and its companions, with so many runs."""
        from popple.pipeline import REPORT_FILES, write_report

        kept = self._kept
        if kept is not None and kept.write_report(directory, num_runs, REPORT_FILES):
            return directory / REPORT_FILES[-1]
        path = self._model_report(write_report, directory, num_runs)
        if kept is not None:
            kept.keep_report(directory, num_runs, REPORT_FILES)
            kept.keep_cycles(self.cycles())
        return path

    def _model_report(
        self, write_report: Callable[..., Path], directory: Path, num_runs: int
    ) -> Path:
        modelled, request = self.modelled(), self.request
        name_compute_sets = request.name_compute_sets
        return write_report(
            modelled,
            directory,
            framework=request.framework,
            framework_version=request.framework_version,
            num_runs=num_runs,
            name_compute_set=name_compute_sets and name_compute_sets(modelled.graph),
        )


Write = Callable[[Path, int], object]
"""Writes a report with so many runs into a directory."""


@dataclass
class ProgramReport:
    """The report of one program: where it lies and how many runs it may show.

    The cost of a program is modelled before it runs, so the report shows one run from
    the beginning. A report that the user has removed is not written again.
    """

    directory: Path
    max_runs: int
    write: Write = field(repr=False)
    num_runs: int = 0

    def begin(self) -> None:
        """Write the report for the first time, with one run."""
        self.write(self.directory, 1)

    def add_run(self) -> None:
        """Count a run of the program; the report shows runs up to `max_runs`."""
        self.num_runs += 1
        # The first run is in the report since `begin`. All runs are modelled alike, so
        # the file is written anew with one more of them.
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
    # Engine options come first: a program that chose its directory finds its report
    # there under `popple run` too.
    if any(_is_on(engine, key) for key in _PROFILES):
        parent = Path(engine.get("autoReport.directory") or ".")
        path = parent / name if own_name is None else _unused(parent / own_name())
        return ProgramReport(path, _max_runs(engine), write)
    if settings.report is not None:
        return ProgramReport(_unused(settings.report / name), 1, write)
    return None


def is_graph_profile_only(engine: Mapping[str, str]) -> bool:
    """Whether engine options ask for a report, but not for what a run of it does."""
    wanted = any(_is_on(engine, key) for key in _PROFILES)
    return wanted and not any(_is_on(engine, key) for key in _RUNS_SHOWN)


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
