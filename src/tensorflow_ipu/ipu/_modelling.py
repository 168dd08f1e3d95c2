"""What IPU programs cost: reports, and the model behind them.

A facade hands over every program it has traced (`record`). Programs are priced when
someone asks: a report is wanted (engine options autoReport.*, `popple run --report`),
or `popple.modelled` is asked about the object a program was made for. A run never waits
for it otherwise: what prices programs (`_pricing`) is not even loaded. Programs are
held weakly: those that are gone cost nothing.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorflow.python.platform import tf_logging as logging

from popple.errors import PoppleError, UsageError

from . import _device
from ._program_settings import ProgramSettings

if TYPE_CHECKING:
    from popple.capture.tensorflow import LowerRequest
    from popple.pipeline import Modelled

__all__ = [
    "ProgramSettings",
    "TracedProgram",
    "modelled",
    "owned_by",
    "programs_of",
    "record",
    "report_directory",
]

_REPORT_KEYS = (
    "autoReport.all",
    "autoReport.outputGraphProfile",
    "autoReport.outputExecutionProfile",
)


class TracedProgram:
    """A program that can be priced as long as its graph is there.

    Of an old-style graph, `ops` are the names of the program's operations and `results`
    those of the tensors and operations it is run for.
    """

    def __init__(
        self,
        name: str,
        graph: Any,
        ops: Sequence[str] | None,
        results: Sequence[str],
        settings: ProgramSettings,
    ) -> None:
        self.name = name
        self.settings = settings
        self._ops = ops
        self._results = results
        self._graph = weakref.ref(graph)
        self._modelled: Modelled | None = None

    def modelled(self) -> Modelled:
        """Graph, program and simulation of one run; made when first asked for."""
        from . import _pricing

        if self._modelled is None:
            self._modelled = _pricing.model(self._request(), self.settings)
        return self._modelled

    def write_report(self, directory: Path) -> None:
        """Write profile.pop and its companions."""
        from . import _pricing

        _pricing.write_report(self.modelled(), directory)

    def _request(self) -> LowerRequest:
        from popple.capture.tensorflow import LowerRequest

        graph = self._graph()
        if graph is None:
            raise UsageError(
                f"the program {self.name} is gone: nothing refers to its graph.",
                remedy="Ask while the function or session it belongs to is in use.",
            )
        find = graph.as_graph_element
        return LowerRequest(
            name=self.name,
            graph=graph,
            ops=None if self._ops is None else [find(name) for name in self._ops],
            results=[find(name) for name in self._results],
            device_mapping=self.settings.device_mapping,
            accumulation=self.settings.accumulation,
            replicas=self.settings.num_replicas,
        )


class _Programs:
    """The programs of this process, by their graphs and by whom they were made for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_graph = weakref.WeakKeyDictionary[Any, dict[str, TracedProgram]]()
        self._by_owner = weakref.WeakKeyDictionary[Any, dict[str, TracedProgram]]()

    def find(self, name: str, graph: Any) -> TracedProgram | None:
        """A program that is known already."""
        with self._lock:
            return self._by_graph.get(graph, {}).get(name)

    def add(self, program: TracedProgram, graph: Any) -> None:
        """Remember a program."""
        with self._lock:
            self._by_graph.setdefault(graph, {})[program.name] = program

    def give(self, program: TracedProgram, owner: Any) -> None:
        """The program is the owner's newest."""
        with self._lock:
            programs = self._by_owner.setdefault(owner, {})
            programs.pop(program.name, None)
            programs[program.name] = program

    def of(self, owner: Any) -> list[TracedProgram]:
        """The programs made for an object, the newest last."""
        with self._lock:
            return list(self._by_owner.get(owner, {}).values())


_PROGRAMS = _Programs()
_owners: contextvars.ContextVar[tuple[Any, ...]] = contextvars.ContextVar(
    "owners", default=()
)


@contextlib.contextmanager
def owned_by(owner: Any) -> Iterator[None]:
    """Programs recorded inside are those of this object, a strategy or a model."""
    token = _owners.set((*_owners.get(), owner))
    try:
        yield
    finally:
        _owners.reset(token)


def record(
    name: str,
    graph: Any,
    *,
    ops: Sequence[Any] | None = None,
    results: Sequence[Any] = (),
    **settings: Any,
) -> TracedProgram:
    """Hand over a traced program; a report is written now if one is wanted.

    `graph` is the body of a traced function. Of an old-style graph, `ops` are the
    program's operations and `results` what it is run for. A second call for the same
    name and graph finds the program that is there. `settings` are fields of
    `ProgramSettings`.
    """
    program = _PROGRAMS.find(name, graph)
    if program is None:
        program = _record_new(name, graph, ops, results, ProgramSettings(**settings))
    for owner in _owners.get():
        _PROGRAMS.give(program, owner)
    return program


def _record_new(
    name: str,
    graph: Any,
    ops: Sequence[Any] | None,
    results: Sequence[Any],
    settings: ProgramSettings,
) -> TracedProgram:
    op_names = None if ops is None else [op.name for op in ops]
    result_names = [result.name for result in results]
    program = TracedProgram(name, graph, op_names, result_names, settings)
    _PROGRAMS.add(program, graph)
    options = _device.get_options(settings.ordinal)
    if (directory := report_directory(name, options)) is not None:
        _try_to_report(program, directory)
    return program


def _try_to_report(program: TracedProgram, directory: Path) -> None:
    """A program that cannot be priced runs all the same."""
    try:
        program.write_report(directory)
    except PoppleError as error:
        logging.warning(f"No report was written for {program.name}: {error}")


def programs_of(owner: Any) -> list[TracedProgram]:
    """The programs that were recorded for an object, the newest last."""
    return _PROGRAMS.of(owner)


def modelled(owner: Any) -> Modelled:
    """The model of the newest program that was recorded for an object."""
    if programs := programs_of(owner):
        return programs[-1].modelled()
    raise UsageError(
        f"nothing of this {type(owner).__name__} has run on an IPU yet.",
        remedy="Ask after the first fit, evaluate, predict or run.",
    )


def report_directory(name: str, options: Any) -> Path | None:
    """Where to write the report of the program `name`, or None.

    `options` are the device's IpuOptions. POPLAR_ENGINE_OPTIONS of the environment
    beats them; `popple run --report` asks for reports of every program.
    """
    given = {item.option: item.value for item in options.compilation_options}
    engine = {**given, **_environment_options()}
    if any(engine.get(key, "").lower() == "true" for key in _REPORT_KEYS):
        parent = Path(engine.get("autoReport.directory") or ".")
        return _unused(parent / f"tf_report__{_now()}__{os.getpid()}")
    if directory := os.environ.get("POPPLE_REPORT"):
        return _unused(Path(directory) / name.replace("/", "_"))
    return None


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
