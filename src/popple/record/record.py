"""`record`: the contents of a report from graph, planned program and simulation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from types import MappingProxyType

from popple._version import __version__
from popple.graph import Graph, Phase, all_ops, render_graph
from popple.plan import PlannedProgram
from popple.program import Direction, StreamCopy
from popple.record.execution import record_steps, record_totals
from popple.record.memory import (
    record_categories,
    record_liveness_deltas,
    record_liveness_steps,
    record_memory,
    record_variables,
)
from popple.record.operations import record_debug_contexts, record_operations
from popple.record.programs import ProgramTree, TreeRecorder
from popple.record.roles import memory_by_role
from popple.record.target import record_parameters, record_target
from popple.report import (
    ChipTime,
    Framework,
    GraphInfo,
    ProducerVersion,
    ReportContents,
    RoleBytes,
    RunInfo,
    TimelineSlice,
)
from popple.report import Step as ReportStep
from popple.sim import Simulation, Slice
from popple.target import Target


def record(
    graph: Graph,
    planned: PlannedProgram,
    simulation: Simulation,
    target: Target,
    *,
    framework: str,
    framework_version: str,
    seconds: Mapping[str, float],
    case_text: str = "",
    more_info: Mapping[str, str] = MappingProxyType({}),
) -> ReportContents:
    """The contents of the report on one run of one replica.

    `case_text` is what was captured; `more_info` are facts beside those known here.
    """
    debug_ids = {op.name: index for index, (op, _) in enumerate(all_ops(graph))}
    instruction_bytes = target.chip.instruction_bytes
    tree = TreeRecorder(simulation, debug_ids, instruction_bytes).record()
    variables, classes = record_variables(
        planned.program, simulation.liveness, simulation.memory
    )
    steps = record_steps(simulation, tree)
    text = render_graph(graph)
    return ReportContents(
        target=record_target(target),
        graph_info=_graph_info(tree, len(planned.program.variables)),
        memory_by_tile=record_memory(simulation.memory),
        producer_version=_version(),
        # Derived from the graph, not random: files of one compilation are matched by
        # this id, and two runs of one program can be compared.
        compilation_id=hashlib.sha256(text.encode()).hexdigest()[:32],
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        target_parameters=record_parameters(target),
        vertex_types=tree.vertex_types,
        compute_sets=tree.compute_sets,
        programs=tree.programs,
        control_programs=tree.control,
        function_programs=tree.functions,
        memory_by_category=tuple(record_categories(simulation.memory)),
        liveness_steps=record_liveness_steps(simulation),
        liveness_deltas=record_liveness_deltas(simulation.liveness),
        liveness_classes=classes,
        variables=variables,
        steps=steps,
        runs=(_run_info(graph, simulation, steps),),
        cycle_totals=(record_totals(simulation),),
        program_trace=[s.program_id for s in steps if s.program_id is not None],
        operations=record_operations(graph, planned, simulation),
        timeline=_timeline(simulation),
        chip_times=record_chip_times(simulation),
        memory_roles=_memory_roles(graph, simulation),
        case_text=case_text,
        info={**_info(graph, simulation, target, seconds), **more_info},
        generic_ops=planned.generic_ops,
        graph_text=text,
        debug_contexts=record_debug_contexts(graph),
        framework=Framework(framework, framework_version),
    )


def _graph_info(tree: ProgramTree, num_variables: int) -> GraphInfo:
    return GraphInfo(
        num_compute_sets=len(tree.compute_sets),
        num_edges=sum(each.num_edges or 0 for each in tree.compute_sets),
        num_variables=num_variables,
        num_vertices=sum(each.num_vertices for each in tree.compute_sets),
    )


def _version() -> ProducerVersion:
    major, minor, point = (int(part) for part in __version__.split(".")[:3])
    return ProducerVersion(f"Popple {__version__}", "", major, minor, point)


def _run_info(graph: Graph, simulation: Simulation, steps: list[ReportStep]) -> RunInfo:
    chips = simulation.program.num_chips
    return RunInfo(
        id=0,
        name=graph.name,
        start_epoch_us=0,
        elapsed_us=round(simulation.seconds * 1e6),
        num_programs=sum(step.program_id is not None for step in steps),
        num_steps=len(steps),
        estimated_hz_by_chip=(simulation.target.chip.clock_hz,) * chips,
        start_cycles_by_chip=(0,) * chips,
        end_cycles_by_chip=(simulation.cost.cycles,) * chips,
    )


def _timeline(simulation: Simulation) -> list[TimelineSlice]:
    return [
        TimelineSlice(
            chip=each.chip,
            start_cycles=each.start_cycles,
            end_cycles=each.end_cycles,
            label=each.label,
            phase=each.phase,
            stage=each.stage if each.stage >= 0 else None,
            micro_batch=_micro_batch(each),
        )
        for each in simulation.timeline.slices
    ]


def _micro_batch(each: Slice) -> int | None:
    # An update is made once for several micro-batches, inside their loop.
    is_numbered = each.micro_batch >= 0 and each.phase != Phase.UPDATE.value
    return each.micro_batch if is_numbered else None


def _memory_roles(graph: Graph, simulation: Simulation) -> list[RoleBytes]:
    return [
        RoleBytes(each.chip, each.tile, role, num_bytes)
        for each in memory_by_role(graph, simulation)
        for role, num_bytes in each.bytes_by_role.items()
    ]


def record_chip_times(simulation: Simulation) -> list[ChipTime]:
    """Where the time of every chip goes."""
    return [
        ChipTime(chip, **asdict(each))
        for chip, each in enumerate(simulation.time_by_chip)
    ]


def _info(
    graph: Graph,
    simulation: Simulation,
    target: Target,
    seconds: Mapping[str, float],
) -> dict[str, str | int | float]:
    execution, energy = graph.execution, simulation.energy
    return {
        "title": graph.name,
        "target": target.system.name,
        "generator": "Popple",
        "popple_version": __version__,
        "modelled": 1,
        "samples_per_run": execution.samples_per_run,
        "device_iterations": execution.device_iterations,
        "gradient_accumulation": execution.accumulation,
        "micro_batch": execution.micro_batch,
        "replicas": execution.replicas,
        "execution_strategy": execution.strategy.value,
        "num_stages": execution.num_stages,
        "is_training": int(graph.is_training),
        "recompute": int(execution.recompute),
        "idle_fraction": simulation.timeline.idle_fraction,
        "model_seconds": sum(seconds.values()),
        "idle_joules": energy.idle_joules,
        "compute_joules": energy.compute_joules,
        "exchange_joules": energy.exchange_joules,
        "host_in_bytes": _host_bytes(simulation, Direction.FROM_HOST),
        "host_out_bytes": _host_bytes(simulation, Direction.TO_HOST),
    }


def _host_bytes(simulation: Simulation, direction: Direction) -> int:
    """Bytes of a run that wait in the host's queues until they are read or fetched."""
    return sum(
        row.step.bytes_by_tile.total * simulation.executions[row.id]
        for row in simulation.steps
        if isinstance(row.step, StreamCopy)
        and row.step.direction is direction
        and not row.step.is_remote_buffer
    )
