"""What a compiled model costs on the IPU: asked for by reports and cycle counts.

The model is made when someone asks, once; running a program never waits for it, nor
for the import of what makes it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from popple.graph import Graph
from popple.target import Target

from . import _translate as translate
from ._cache import ExecutableCache, find_cache
from ._compile import CompiledStep
from ._device import model_target
from ._errors import Error
from ._ops.overlap import overlap_of
from .options import Options

if TYPE_CHECKING:
    from popple.options import ModelOptions
    from popple.pipeline import Modelled

__all__ = ["ModelledCost", "report_directory"]

_STAGES = ("tracing", "lowering", "preparing", "modelling")
_BAR_TOTAL = 100
_REPORT_KEYS = (
    "autoReport.all",
    "autoReport.outputGraphProfile",
    "autoReport.outputExecutionProfile",
)


def report_directory(options: Options, name: str) -> Path | None:
    """Where to write the report of the model `name`, or None.

    POPLAR_ENGINE_OPTIONS of the environment beats the program's own engine options;
    `popple run --report` asks for reports of every model of the program.
    """
    engine = dict(options._Popart.options.get("engineOptions", {}))
    engine |= _environment_options()
    if any(_is_true(engine.get(key)) for key in _REPORT_KEYS):
        return Path(str(engine.get("autoReport.directory", "."))) / name
    if directory := os.environ.get("POPPLE_REPORT"):
        return _unused(Path(directory) / name)
    return None


def _environment_options() -> dict[str, Any]:
    text = os.environ.get("POPLAR_ENGINE_OPTIONS", "")
    if not text:
        return {}
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError) as error:
        raise Error(
            f"POPLAR_ENGINE_OPTIONS is not a JSON object: {error}. Write it like "
            '{"autoReport.all": "true"}.'
        ) from error


def _is_true(value: object) -> bool:
    return str(value).lower() == "true"


class ModelledCost:
    """The model of one compiled step, made when first asked for.

    Inference has no optimizer.
    """

    def __init__(
        self, options: Options, optimizer: torch.optim.Optimizer | None
    ) -> None:
        self._options = options
        self._optimizer = optimizer
        self._step: CompiledStep | None = None
        self._modelled: Modelled | None = None
        self._cache: ExecutableCache | None = None
        self._cycles: int | None = None
        self.compilation_time = timedelta()

    def set_step(self, step: CompiledStep) -> None:
        """The step to model; the executable cache may know it already."""
        self._step = step
        if (directory := find_cache(self._options)) is not None:
            self._cache = ExecutableCache(directory, *self._request())
            self._cycles = self._cache.open().cycles

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
            self._modelled = self._make()
        return self._modelled

    def write_report(self, directory: Path) -> None:
        """Write profile.pop and its companions."""
        from popple.pipeline import write_report

        write_report(
            self.modelled(),
            directory,
            framework="poptorch",
            framework_version=torch.__version__,
        )

    def _make(self) -> Modelled:
        from popple.pipeline import model_graph

        graph, options, target = self._request()
        return model_graph(graph, target, options)

    def _request(self) -> tuple[Graph, ModelOptions, Target]:
        """What is to be modelled, how, and on what machine."""
        assert self._step is not None
        step = self._step
        lowered = step.lowered
        options = translate.model_options(
            self._options,
            step.micro_batch,
            self._optimizer,
            dict(lowered.gradients),
            overlap_of(step.traced),
        )
        replicas = translate.num_replicas(self._options)
        target = model_target(step.num_ipus, replicas)
        return lowered.graph, options, target

    @contextmanager
    def progress(self) -> Iterator[Callable[[str], None]]:
        """A function to call at the beginning of each part of the compilation."""
        bar = self._bar()
        start = time.monotonic()

        def step(part: str) -> None:
            bar(_BAR_TOTAL * _STAGES.index(part) // len(_STAGES), _BAR_TOTAL)

        try:
            yield step
            bar(_BAR_TOTAL, _BAR_TOTAL)
        finally:
            self._options._progress_bar.close()
        self.compilation_time = timedelta(seconds=time.monotonic() - start)

    def _bar(self) -> Callable[[int, int], None]:
        wanted = self._options._show_compilation_progress_bar
        if not wanted or os.environ.get("POPPLE_QUIET"):
            return lambda done, total: None
        return self._options._progress_bar


# Reports of one process: a second model of the same name gets a directory of its own.
_WRITTEN: set[Path] = set()


def _unused(directory: Path) -> Path:
    """The directory, numbered if this process has already written a report there."""
    free, number = directory, 2
    while free in _WRITTEN:
        free, number = directory.with_name(f"{directory.name}_{number}"), number + 1
    _WRITTEN.add(free)
    return free
