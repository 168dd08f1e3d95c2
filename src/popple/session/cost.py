"""What a program costs on its target: modelled when someone asks, once.

Running a program never waits for its model, nor for the import of what makes it.
Reports, cycle counts and `popple.modelled` ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from popple.graph import Graph
from popple.session.cache import ExecutableCache
from popple.target import Target

if TYPE_CHECKING:
    from popple.options import ModelOptions
    from popple.pipeline import Modelled

NameComputeSet = Callable[[str], str]
"""The name that users of a facade know a compute set by."""


@dataclass(frozen=True)
class CostRequest:
    """A captured graph, how it is placed and planned, and the machine.

    `name_compute_sets` gives, for the placed graph, the compute sets of a report the
    names that users of the facade know.
    """

    graph: Graph
    options: ModelOptions
    target: Target
    framework: str
    framework_version: str
    name_compute_sets: Callable[[Graph], NameComputeSet] | None = None


class ModelledCost:
    """The modelled cost of one program; `ask` says what to model when it is wanted.

    An executable cache, if the program has one, may know the cycles already.
    """

    def __init__(
        self, ask: Callable[[], CostRequest], cache_directory: Path | None = None
    ) -> None:
        self._ask = ask
        self._request: CostRequest | None = None
        self._modelled: Modelled | None = None
        self._cycles: int | None = None
        self._cache: ExecutableCache | None = None
        if cache_directory is not None:
            request = self.request
            parts = (request.graph, request.options, request.target)
            self._cache = ExecutableCache(cache_directory, *parts)
            self._cycles = self._cache.open().cycles

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
            if self._cache is not None:
                self._cache.keep_cycles(self._cycles)
        return self._cycles

    def modelled(self) -> Modelled:
        """Graph, program and simulation of one call."""
        if self._modelled is None:
            from popple.pipeline import model_graph

            request = self.request
            self._modelled = model_graph(request.graph, request.target, request.options)
        return self._modelled

    def write_report(self, directory: Path, num_runs: int = 1) -> Path:
        """Write profile.pop and its companions, with so many runs."""
        from popple.pipeline import write_report

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
