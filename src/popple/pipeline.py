"""The flow of Popple as code: both halves of it, the first file to read.

a program and the arguments of its first call
  capture     a step of it traced, and a Graph of that step      capture_program
   |
   |  THE NUMBERS, computed by the framework the program was written in
   +- run     inputs cut, the step run, outputs put together     run_call
   |
   |  THE COST, of the same step on the modelled machine         ModelledCost, lazily
   `- place   copies, rings, accumulators, collectives           run_passes
      plan    one program over tile-mapped variables             plan_graph
      sim     cycles, memory, timeline                           simulate
      report  profile.pop and its companions                     write_report

Neither half waits for the other. What the cost half takes is imported when a cost is
asked for: most programs only run. `explain` says why one op costs what it costs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from popple._version import __version__
from popple.errors import UsageError
from popple.graph import Graph, Strategy, all_ops
from popple.lazy import LazyModule
from popple.logs import get_logger
from popple.text_table import render_html_table

if TYPE_CHECKING:
    from popple import case, place, plan, program, record, report, sim
    from popple import options as _options
    from popple.options import ModelOptions
    from popple.target import Target
else:
    _options = LazyModule("popple.options")
    case = LazyModule("popple.case")
    place = LazyModule("popple.place")
    plan = LazyModule("popple.plan")
    program = LazyModule("popple.program")
    record = LazyModule("popple.record")
    report = LazyModule("popple.report")
    sim = LazyModule("popple.sim")

REPORT_FILES = ("debug.cbor", "framework.json", "profile.pop")
"""The files of a report, in the order in which they are written."""

# Scripts that measure compilation look for PopART's sentences in the log.
_POPART_DEVICE = get_logger("popart", "devicex")
_POPART_SESSION = get_logger("popart", "session")
_POPART_TRANSFORM = get_logger("popart", "transform")

Progress = Callable[[str], None]
Traced = TypeVar("Traced")
Lowered = TypeVar("Lowered")
Step = TypeVar("Step", covariant=True)
Data = TypeVar("Data")
Batch = TypeVar("Batch")


# -- capture: what both halves begin with


class FrontEnd(Protocol[Traced, Lowered, Step]):
    """A framework's way from a program to a step, in capture/ and engine/."""

    def trace(self) -> Traced:
        """The operators of one micro-batch, as the framework knows them."""
        ...

    def lower(self, traced: Traced) -> Lowered:
        """The same as a Graph."""
        ...

    def prepare(self, traced: Traced, lowered: Lowered) -> Step:
        """A step that can be run and modelled."""
        ...


def capture_program(
    front_end: FrontEnd[Traced, Lowered, Step],
    progress: Progress = lambda stage: None,
) -> Step:
    """Trace one micro-batch of a program and lower it to a Graph."""
    progress("tracing")
    traced = front_end.trace()
    progress("lowering")
    lowered = front_end.lower(traced)
    progress("preparing")
    return front_end.prepare(traced, lowered)


# -- the numbers


class CallRunner(Protocol[Data, Batch]):
    """A session as a call sees it: a step with its memory on the device."""

    def split(self, inputs: Sequence[Data]) -> Iterator[Batch]:
        """The micro-batches of a call, as its batch plan cuts the inputs."""
        ...

    def execute(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The outputs of each micro-batch as it finishes; weights are updated."""
        ...

    def collect(self, outputs: Iterator[Batch]) -> list[Data]:
        """The outputs that the call returns, put together."""
        ...


def run_call(session: CallRunner[Data, Batch], inputs: Sequence[Data]) -> list[Data]:
    """One call: every micro-batch of every replica, accumulated and updated."""
    batches = session.split(inputs)
    outputs = session.execute(batches)
    return session.collect(outputs)


# -- the cost


@dataclass(frozen=True, repr=False)
class Modelled:
    """Everything known about one run of a program on its target.

    `captured` is the graph as it was handed in, `graph` what the chips run.
    """

    captured: Graph
    graph: Graph
    target: Target
    options: ModelOptions
    planned: plan.PlannedProgram
    simulation: sim.Simulation
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def program(self) -> program.Program:
        """What the machine runs."""
        return self.planned.program

    @property
    def samples_per_second(self) -> float:
        """Samples of all replicas per second of modelled time."""
        return self.graph.execution.samples_per_run / self.simulation.seconds

    @property
    def energy(self) -> sim.Energy:
        """What all replicas draw in one run, a rough estimate."""
        return self.simulation.energy.of_replicas(self.graph.execution.replicas)

    def summary(self) -> dict[str, str]:
        """What people ask first, in words."""
        fullest = self.simulation.peak_tile_bytes / self.target.chip.tile_memory_bytes
        return {
            "program": self.graph.name,
            "target": f"{self.target.num_chips} x {self.target.chip.name}",
            "cycles": f"{self.simulation.cost.cycles:,}",
            "samples per second": f"{self.samples_per_second:,.0f}",
            "fullest tile": f"{fullest:.0%}",
            "fits": "yes" if self.simulation.fits else "no",
        }

    def __repr__(self) -> str:
        parts = (f"{name}: {value}" for name, value in self.summary().items())
        return f"Modelled({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return render_html_table("Modelled", list(self.summary().items()))


def model_graph(
    graph: Graph,
    target: Target,
    options: ModelOptions | None = None,
    progress: Progress = lambda stage: None,
    store: plan.PlanStore | None = None,
) -> Modelled:
    """Place, plan and simulate a captured graph; plans may come from a store."""

    options = options or _options.ModelOptions()
    clock = _Clock(progress)
    _POPART_SESSION.info("Popart version: Popple %s", __version__)
    sim.log_target(graph.name, target)
    clock.start("place")
    # The planner verifies what it is given, and that is the graph of the last pass.
    passes = passes_of(options)
    placed = place.run_passes(graph, passes, _log_pass, is_verified=False)
    _POPART_DEVICE.info("Poplar graph initialised")
    clock.start("plan")
    _POPART_DEVICE.info("Starting compilation")
    planned = plan.plan_graph(placed, target, options.plan, store=store)
    if not options.vertex_code:
        bare = replace(planned.program, has_vertex_code=False)
        planned = replace(planned, program=bare)
    clock.start("simulate")
    phases = {op.name: op.phase.value for op, _ in all_ops(placed)}
    simulation = sim.simulate(planned.program, target, phases)
    clock.stop()
    sim.log_simulation(simulation)
    _POPART_DEVICE.info("Graph compiled")
    return Modelled(graph, placed, target, options, planned, simulation, clock.seconds)


def _log_pass(done: place.Pass, graph: Graph) -> None:
    """One line for each pass, in PopART's log."""
    if _POPART_TRANSFORM.isEnabledFor(logging.DEBUG):
        _POPART_TRANSFORM.debug("%s: %d ops", type(done).__name__, len(graph.ops))


def passes_of(options: ModelOptions) -> list[place.Pass]:
    """The passes that turn what was captured into what the chips run, in order.

    What front ends capture has been through `RemoveDead`.
    """
    gradients = options.update.gradients.values() if options.update else ()
    passes: list[place.Pass] = [place.FuseDropout(frozenset(gradients))]
    if options.synthetic:
        passes.append(place.MakeOnDevice(frozenset(options.synthetic)))
    if (said := options.ops) is not None:
        passes.append(place.ApplyOpOptions(said.by_family, said.by_stage, said.by_kind))
    if update := options.update:
        passes += [
            place.UpdateWeights(
                update.kind, update.num_states, update.gradients, update.state_dtypes
            ),
            place.AccumulateGradients(options.accumulation, update.accumulator_dtype),
        ]
    # Replicas reduce what was accumulated, once for each update.
    passes.append(place.Replicate(options.replicas, options.merged_bytes))
    memory = options.memory
    if memory.shared_updates is not None:
        passes.append(place.ShareUpdates(memory.shared_updates))
    # A pipeline recomputes by itself: its backward stages have numbers of their own.
    is_staged = options.strategy is Strategy.SHARDED or options.redone is not None
    if options.recompute and is_staged and options.strategy is not Strategy.PIPELINED:
        passes.append(place.Recompute(options.redone))
    return [
        *passes,
        _sharing_of(options),
        # From here on every op has its chip and stage.
        *([place.BoundMemory(bounds)] if (bounds := options.memory_by_chip) else []),
        place.Offload(
            weights=memory.weights_off_chip,
            states=memory.states_off_chip,
            accumulators=memory.accumulators_off_chip,
            stashes=memory.stashes_off_chip,
        ),
        place.RepeatOnDevice(options.device_iterations, options.micro_batch),
        place.Schedule(),
        # The order is final but for convolutions that run side by side.
        place.GroupConvolutions(),
        place.MarkLinearLayers(options.layers_as_one),
        # Last: it compares ops by all that passes have told about them.
        *([place.Outline()] if options.outlined_layers else []),
    ]


def _sharing_of(options: ModelOptions) -> place.Pass:
    """How the chips of a replica share the work; one chip needs no sharing."""

    if options.strategy is Strategy.PIPELINED:
        return place.Pipeline(options.recompute, options.interleaved, options.redone)
    is_phased = options.strategy is Strategy.PHASED
    return place.Shard(Strategy.PHASED if is_phased else Strategy.SHARDED)


def write_report(
    modelled: Modelled,
    directory: Path,
    *,
    framework: str,
    framework_version: str,
    num_runs: int = 1,
    name_compute_set: Callable[[str], str] | None = None,
) -> Path:
    """Write the report of a modelled program; the path of its profile.pop.

    All runs are alike: `num_runs` says how many the report shows, 0 for a program that
    does not fit into memory and cannot be run. `name_compute_set`
    gives compute sets the names that users of a facade know.
    """

    told = case.Case(modelled.captured, modelled.target, modelled.options, framework)
    contents = record.record(
        modelled.graph,
        modelled.planned,
        modelled.simulation,
        modelled.target,
        framework=framework,
        framework_version=framework_version,
        seconds=modelled.seconds,
        case_text=case.render_case(told),
        more_info=_left_out(modelled.options),
    )
    if name_compute_set is not None:
        contents = contents.with_names(name_compute_set)
    if num_runs != 1:
        contents = record.repeat_run(contents, num_runs)
    path = report.write_report(contents, directory)
    get_logger("poplar", "PROFILER").info("Profile saved to: %s", path)
    return path


def _left_out(options: ModelOptions) -> dict[str, str]:
    """What a reader must know of the program that its figures do not hold."""
    text = " ".join(options.not_modelled)
    return {"not_modelled": text} if text else {}


def modelled(program: Any) -> Modelled:
    """The model behind a facade's object, for example a PopTorch executor."""
    model = getattr(program, "__popple__", None)
    if model is None:
        raise UsageError(
            f"a {type(program).__name__} is not a program that Popple models.",
            remedy="Pass what a facade made, for example a poptorch training model.",
        )
    return model()


def explain(subject: Any, name: str = "") -> report.Explanation:
    """Why an op or a layer costs what it costs.

    `subject` is an open report, what `model_graph` gives or a facade's object; `name`
    is an op's name, a part of it, or the path of a module. Without a name: the whole
    run with its costliest ops.
    """

    if isinstance(subject, report.Report):
        return report.explain_report(subject, name)
    model = subject if isinstance(subject, Modelled) else modelled(subject)
    rows = record.record_operations(model.graph, model.planned, model.simulation)
    rows.sort(key=lambda row: -row.cycles)
    timed = {row.name for row in rows}
    run = report.ExplainedRun(
        model.graph.name,
        model.simulation.cost.cycles,
        rows,
        frozenset(op.name for op, _ in all_ops(model.graph) if op.name not in timed),
        report.add_times(record.record_chip_times(model.simulation)),
    )
    return report.explain_run(run, name)


class _Clock:
    """Wall time of each stage of the flow."""

    def __init__(self, progress: Progress) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress
        self._stage = ""
        self._since = 0.0

    def start(self, stage: str) -> None:
        self.stop()
        self._progress(stage)
        self._stage, self._since = stage, time.perf_counter()

    def stop(self) -> None:
        if self._stage:
            self.seconds[self._stage] = time.perf_counter() - self._since
        self._stage = ""
