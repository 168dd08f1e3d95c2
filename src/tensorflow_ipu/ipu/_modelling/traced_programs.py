"""What IPU programs cost: reports, and the model behind them.

A facade hands over every program it has traced (`record`). Programs are modelled when
someone asks: a report is wanted (engine options autoReport.*, `popple run --report`),
or `popple.modelled` is asked about the object a program was made for. A run never waits
for it otherwise: what models programs (`model`) is not even loaded. Programs are
held weakly: those that are gone cost nothing.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import tensorflow.compat.v2 as tf
from tensorflow.python.platform import tf_logging as logging

from popple.errors import OutOfMemoryError, PoppleError, UsageError
from popple.session import (
    CostRequest,
    ModelledCost,
    ProgramReport,
    compile_program,
    engine_options,
    follow_log_variables,
    log_run,
    read_settings,
)

from .. import _device, _errors
from .._device import poplar_flags, trace_events
from . import program_arguments
from .kept_programs import find_kept
from .program_settings import ProgramSettings

if TYPE_CHECKING:
    from popple.pipeline import Modelled

__all__ = [
    "ProgramSettings",
    "TracedProgram",
    "modelled",
    "owned_by",
    "programs_of",
    "record",
]


class TracedProgram:
    """A program that can be modelled as long as its graph is there.

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
        # Weakly: a report is no reason to keep a graph and its constants in memory.
        self._graph = weakref.ref(graph)
        self._cost = ModelledCost(self._cost_request)
        self._is_compiled = self._is_loaded = False
        self._report: ProgramReport | None = None

    def modelled(self) -> Modelled:
        """Graph, program and simulation of one run; made when first asked for."""
        return self._cost.modelled()

    def cycles(self) -> int:
        """Modelled cycles of one run."""
        return self._cost.cycles()

    def compile(self) -> None:
        """Report and note that the program was compiled, if it is not yet."""
        if self._is_compiled:
            return
        # The configuration may have changed since the program was modelled.
        self._is_compiled, self._cost = True, self._find_cost()
        self._report = self._model()
        if trace_events.is_wanted(self.settings.ordinal):
            self._trace()

    def _find_cost(self) -> ModelledCost:
        """The program's cost, from the executable cache if the shell names one."""
        directory = poplar_flags.executable_cache()
        if directory is None:
            self._is_loaded = False
            return ModelledCost(self._cost_request)
        kept, self._is_loaded = find_kept(self.name, directory, self._key)
        return ModelledCost(self._cost_request, kept)

    def _key(self) -> str:
        """What the program is called in the executable cache."""
        # Loaded like what models programs: most have no cache.
        from .program_keys import program_key

        ordinal = self.settings.ordinal
        return program_key(
            self._live_graph(),
            self._find_ops(),
            self._results,
            self.settings,
            _device.get_options(ordinal),
            _device.system(ordinal),
        )

    def _model(self) -> ProgramReport | None:
        """What the configuration or the shell asks of the model; the report, if any.

        A program that cannot be modelled runs all the same.
        """
        configured = _device.get_options(self.settings.ordinal)
        given = {item.option: item.value for item in configured.compilation_options}
        engine, settings = engine_options(given), read_settings()
        follow_log_variables()
        name = self.name.replace("/", "_")
        try:
            return compile_program(
                name,
                self._cost,
                engine,
                settings,
                _dated_name,
                is_ipu_model=poplar_flags.running_on_ipu_model(),
                is_loaded=self._is_loaded,
            )
        except OutOfMemoryError as error:
            self.forget()  # what was refused once is refused again
            text = f"[Poplar][Compile engine] graph_memory_allocation_error: {error}"
            kind = tf.errors.ResourceExhaustedError
            raise _errors.error(kind, text) from error
        except PoppleError as error:
            logging.warning(f"No report was written for {self.name}: {error}")
            return None

    def _trace(self) -> None:
        """Note the compilation; one that cannot be modelled says nothing more."""
        from . import tensor_maps

        texts: dict[str, str] = {}
        with contextlib.suppress(PoppleError):
            texts["tensor_map"] = tensor_maps.tensor_map(self.modelled())
            texts["instruction_info"] = tensor_maps.instruction_info(self.modelled())
        trace_events.record_compile(self.name, self.settings.ordinal, **texts)

    def add_run(self) -> None:
        """The program is about to run."""
        self.compile()
        log_run(self.name)
        if self._report is not None:
            self._report.add_run()

    def forget(self) -> None:
        """Let the program be compiled again, for a configuration yet unknown."""
        self._is_compiled, self._report = False, None

    def arguments(self) -> program_arguments.Arguments:
        """What travels between host and device."""
        num_outputs = sum(":" in name for name in self._results)
        return program_arguments.arguments_of(
            self._live_graph(), self._find_ops(), num_outputs
        )

    def _live_graph(self) -> Any:
        graph = self._graph()
        if graph is None:
            raise UsageError(
                f"the program {self.name} is gone: nothing refers to its graph.",
                remedy="Ask while the function or session it belongs to is in use.",
            )
        return graph

    def _find_ops(self) -> list[Any] | None:
        find = self._live_graph().as_graph_element
        return None if self._ops is None else [find(name) for name in self._ops]

    def _cost_request(self) -> CostRequest:
        # Most programs only run: what captures and models them is loaded when asked.
        from popple.capture.tensorflow import LowerRequest

        from .model import cost_request

        graph = self._live_graph()
        request = LowerRequest(
            name=self.name,
            graph=graph,
            ops=self._find_ops(),
            results=[graph.as_graph_element(name) for name in self._results],
            device_mapping=self.settings.device_mapping,
            accumulation=self.settings.accumulation,
            replicas=self.settings.num_replicas,
        )
        return cost_request(request, self.settings)


def _dated_name() -> str:
    """The directory of a report as the vendor's TensorFlow calls it."""
    now = datetime.now()
    time = f"{now:%Y-%m-%d__%H-%M-%S}.{now.microsecond // 1000:03}"
    return f"tf_report__{time}__{os.getpid()}"


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

    def give(self, program: TracedProgram, owner: object) -> None:
        """The program is the owner's newest."""
        with self._lock:
            programs = self._by_owner.setdefault(owner, {})
            programs.pop(program.name, None)
            programs[program.name] = program

    def forget(self) -> None:
        """Let all be compiled again."""
        with self._lock:
            known = [*self._by_graph.values()]
        for program in (program for programs in known for program in programs.values()):
            program.forget()

    def of(self, owner: object) -> list[TracedProgram]:
        """The programs made for an object, the newest last."""
        with self._lock:
            return list(self._by_owner.get(owner, {}).values())


_PROGRAMS = _Programs()
_device.on_reset(_PROGRAMS.forget)
_owners: contextvars.ContextVar[tuple[Any, ...]] = contextvars.ContextVar(
    "owners", default=()
)


@contextlib.contextmanager
def owned_by(owner: object) -> Iterator[None]:
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
    """Hand over a traced program, which is compiled: a report is written if wanted.

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
    # By name, as operations refer to their graph.
    op_names = None if ops is None else [op.name for op in ops]
    result_names = [result.name for result in results]
    program = TracedProgram(name, graph, op_names, result_names, settings)
    _PROGRAMS.add(program, graph)
    program.compile()
    return program


def programs_of(owner: object) -> list[TracedProgram]:
    """The programs that were recorded for an object, the newest last."""
    return _PROGRAMS.of(owner)


def modelled(owner: object) -> Modelled:
    """The model of the newest program that was recorded for an object."""
    if programs := programs_of(owner):
        return programs[-1].modelled()
    raise UsageError(
        f"nothing of this {type(owner).__name__} has run on an IPU yet.",
        remedy="Ask after the first fit, evaluate, predict or run.",
    )
