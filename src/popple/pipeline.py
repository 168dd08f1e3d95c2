"""The flow of Popple as code: Graph -> Program -> Simulation -> Report.

capture gives a Graph
  place    one graph with copies, rings, accumulators, collectives     run_passes
  plan     one program over tile-mapped variables                      plan_graph
  sim      cycles, memory, timeline                                    simulate
  report   profile.pop and its companions                              write_report

`explain` says why one op of all that costs what it costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from popple import report
from popple.errors import UsageError
from popple.graph import Graph, Strategy
from popple.options import ModelOptions
from popple.place import (
    AccumulateGradients,
    ApplyOpOptions,
    GroupConvolutions,
    MarkLinearLayers,
    Offload,
    Pass,
    Pipeline,
    Recompute,
    RepeatOnDevice,
    Replicate,
    Schedule,
    Shard,
    ShareUpdates,
    UpdateWeights,
    run_passes,
)
from popple.plan import PlannedProgram, plan_graph
from popple.program import Program
from popple.program import verify as verify_program
from popple.record import record, record_operations, repeat_run
from popple.sim import Energy, Simulation, simulate
from popple.target import Target

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Modelled:
    """Everything known about one run of a program on its target."""

    graph: Graph
    target: Target
    options: ModelOptions
    planned: PlannedProgram
    simulation: Simulation
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def program(self) -> Program:
        """What the machine runs."""
        return self.planned.program

    @property
    def samples_per_second(self) -> float:
        """Samples of all replicas per second of modelled time."""
        return self.graph.execution.samples_per_run / self.simulation.seconds

    @property
    def energy(self) -> Energy:
        """What all replicas draw in one run, a rough estimate."""
        return self.simulation.energy.of_replicas(self.graph.execution.replicas)


def model_graph(
    graph: Graph,
    target: Target,
    options: ModelOptions | None = None,
    progress: Progress = lambda stage: None,
) -> Modelled:
    """Place, plan and simulate a captured graph."""
    options = options or ModelOptions()
    clock = _Clock(progress)
    clock.start("place")
    placed = run_passes(graph, passes_of(options))
    clock.start("plan")
    planned = plan_graph(placed, target, options.plan)
    verify_program(planned.program)
    clock.start("simulate")
    simulation = simulate(planned.program, target)
    clock.stop()
    return Modelled(placed, target, options, planned, simulation, clock.seconds)


def passes_of(options: ModelOptions) -> list[Pass]:
    """The passes that turn what was captured into what the chips run, in order.

    What front ends capture has been through `RemoveDead`.
    """
    passes: list[Pass] = []
    if (said := options.ops) is not None:
        passes.append(ApplyOpOptions(said.by_family, said.by_stage, said.by_kind))
    if update := options.update:
        passes += [
            UpdateWeights(
                update.kind, update.num_states, update.gradients, update.state_dtype
            ),
            AccumulateGradients(options.accumulation, update.accumulator_dtype),
        ]
    # Replicas reduce what was accumulated, once for each update.
    passes.append(Replicate(options.replicas, options.merged_bytes))
    memory = options.memory
    if memory.shared_updates is not None:
        passes.append(ShareUpdates(memory.shared_updates))
    # A pipeline recomputes by itself: its backward stages have numbers of their own.
    if options.recompute and options.strategy is Strategy.SHARDED:
        passes.append(Recompute())
    return [
        *passes,
        _sharing_of(options),
        # From here on every op has its chip and stage.
        Offload(
            weights=memory.weights_off_chip,
            states=memory.states_off_chip,
            accumulators=memory.accumulators_off_chip,
            stashes=memory.stashes_off_chip,
        ),
        RepeatOnDevice(options.device_iterations, options.micro_batch),
        Schedule(),
        # The order is final but for convolutions that run side by side.
        GroupConvolutions(),
        MarkLinearLayers(),
    ]


def _sharing_of(options: ModelOptions) -> Pass:
    """How the chips of a replica share the work; one chip needs no sharing."""
    if options.strategy is Strategy.PIPELINED:
        return Pipeline(options.recompute, options.interleaved)
    is_phased = options.strategy is Strategy.PHASED
    return Shard(Strategy.PHASED if is_phased else Strategy.SHARDED)


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

    All runs are alike: `num_runs` says how many the report shows. `name_compute_set`
    gives compute sets the names that users of a facade know.
    """
    contents = record(
        modelled.graph,
        modelled.planned,
        modelled.simulation,
        modelled.target,
        framework=framework,
        framework_version=framework_version,
        seconds=modelled.seconds,
    )
    if name_compute_set is not None:
        contents = contents.with_names(name_compute_set)
    if num_runs > 1:
        contents = repeat_run(contents, num_runs)
    return report.write_report(contents, directory)


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
    rows = record_operations(model.graph, model.planned, model.simulation)
    rows.sort(key=lambda row: -row.cycles)
    timed = {row.name for row in rows}
    run = report.ExplainedRun(
        model.graph.name,
        model.simulation.cost.cycles,
        rows,
        frozenset(op.name for op in model.graph.ops if op.name not in timed),
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
