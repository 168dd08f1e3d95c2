"""Lowering: a Graph becomes a Program on a Target.

    plan_graph = plan_ops  (a plan and a mapping for everything)
               + Emitter   (steps and variables of each op)
               + structure (what is repeated, what runs at the same time)

The structure follows the graph's Execution: micro-batches are repeated for gradient
accumulation, then the update runs once, and all of it for every device iteration.
Pipelines have a structure of their own, in `pipeline`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from popple.errors import PlanError
from popple.graph import Graph, Op, Phase, Strategy, qualified, verify
from popple.plan.lowering.emit import Emitter
from popple.plan.lowering.io_tiles import IoTiles
from popple.plan.lowering.pipeline import lower_pipeline
from popple.plan.lowering.plan_ops import PlannedOps, Progress, plan_ops
from popple.plan.lowering.streaming import verify_streaming_memory
from popple.plan.lowering.streams import Streams, find_streams
from popple.plan.lowering.structure import Structure
from popple.plan.lowering.update import lower_update
from popple.plan.opplan import HostCopy, LinkCopy, OpPlan, PlanStep, TileMapping
from popple.plan.options import PlanOptions
from popple.plan.planner import Planner, PlanStore
from popple.program import Program
from popple.target import Target


@dataclass(frozen=True)
class PlannedProgram:
    """The program, and why it is as it is.

    `plans` are by op, `mappings` by value and in terms of one chip, `chips` by the
    value that owns the memory. `generic_ops` counts the framework ops that the generic
    rule planned.
    """

    program: Program
    plans: Mapping[str, OpPlan]
    mappings: Mapping[str, TileMapping]
    generic_ops: Mapping[str, int]
    chips: Mapping[str, int]


def plan_graph(
    graph: Graph,
    target: Target,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
    store: PlanStore | None = None,
) -> PlannedProgram:
    """Plan every op of a graph and lower it to a program."""
    verify(graph)
    _verify_chips(graph, target)
    verify_streaming_memory(graph, target)
    options = options or PlanOptions()
    # Tiles for traffic are the last ones: plans see a chip without them.
    planner = Planner(_for_compute(target, options.io.num_tiles), options, store)
    planned = plan_ops(graph, planner, progress)
    emitter = Emitter(graph, planned, target)
    streams = find_streams(graph, planned)
    # Without a pipeline chips take turns, whatever made the graph use several.
    is_pipeline = graph.execution.strategy is Strategy.PIPELINED
    lowered = lower_pipeline if is_pipeline else lower_in_turn
    io = IoTiles(options.io, target.chip.num_tiles, emitter.variables)
    structure = lowered(graph, emitter, streams, io)
    program = Program(
        graph.name,
        graph.execution.num_chips,
        target.chip.num_tiles,
        emitter.variables,
        structure.main,
        {**structure.functions, **emitter.functions},
        find_outlined(graph, planned) if planner.options.outline else {},
    )
    return PlannedProgram(
        program,
        _everywhere(planned, lambda each: each.plans),
        _everywhere(planned, lambda each: each.mappings),
        planner.generic_ops,
        planned.chips,
    )


def _everywhere(
    planned: PlannedOps, part: Callable[[PlannedOps], Mapping[str, Any]]
) -> dict[str, Any]:
    """A table of the main graph with those of all functions, names qualified."""
    whole = dict(part(planned))
    for name, function in planned.functions.items():
        own = part(function.planned).items()
        whole.update((qualified(name, key), each) for key, each in own)
    return whole


def find_outlined(graph: Graph, planned: PlannedOps) -> dict[str, str]:
    """For every op that can run the code of an earlier one, that one.

    The frameworks' compilers make functions of what repeats, layer by layer. With equal
    plans on one chip, operands lie alike and nothing has to be copied to where the
    function has them; such copies are not modelled, so ops that would need them keep
    their own code. Transfers to other chips and streams of the host have partners,
    which differ; off-chip memory is one partner for all, and the place in its buffer an
    operand (graphcore/popart, transforms/accumulateouterfragmentparallelizer.cpp). Ops
    of a function share code with those of the same function: it runs on any chip.
    """
    outlined = _find_repeated(graph.ops, planned.plans)
    for name, function in planned.functions.items():
        repeated = _find_repeated(function.body.ops, function.planned.plans)
        outlined |= {
            qualified(name, a): qualified(name, b) for a, b in repeated.items()
        }
    return outlined


def _find_repeated(ops: Iterable[Op], plans: Mapping[str, OpPlan]) -> dict[str, str]:
    # Plans are told apart by identity: the planner gives equal ops the same one.
    first: dict[tuple[int, int], str] = {}
    repeated: dict[str, str] = {}
    for op in ops:
        plan = plans[op.name]
        if not plan.steps or any(map(_has_partner, plan.steps)):
            continue
        # Code lies in the memory of tiles, so it is shared within a chip only.
        original = first.setdefault((id(plan), op.chip), op.name)
        if original != op.name:
            repeated[op.name] = original
    return repeated


def _has_partner(step: PlanStep) -> bool:
    """Whether a step moves data to or from one certain place beyond the chip."""
    is_remote_buffer = isinstance(step, HostCopy) and step.is_remote_buffer
    return isinstance(step, HostCopy | LinkCopy) and not is_remote_buffer


def lower_in_turn(
    graph: Graph, emitter: Emitter, streams: Streams, io: IoTiles
) -> Structure:
    """Chips take turns: one op after the other, in the order of the graph."""
    execution = graph.execution
    traffic = io.traffic(
        [emitter.stream_in(*item) for item in streams.all_in()],
        [emitter.stream_out(*item) for item in streams.all_out()],
    )
    steps = emitter.steps_of(op for op in graph.ops if op.phase is not Phase.UPDATE)
    update = lower_update(graph, emitter, streams)
    counts = (execution.device_iterations, execution.accumulation)
    return Structure(io.loops(counts, traffic, traffic.around(steps), update))


def _for_compute(target: Target, num_io_tiles: int) -> Target:
    """The target with the tiles that compute."""
    if not num_io_tiles:
        return target
    chip = replace(target.chip, num_tiles=target.chip.num_tiles - num_io_tiles)
    return replace(target, system=replace(target.system, chip=chip))


def _verify_chips(graph: Graph, target: Target) -> None:
    needed = graph.execution.num_chips
    if needed > target.num_chips:
        raise PlanError(
            f"the graph needs {needed} chips, but the target has {target.num_chips}.",
            where=f"graph {graph.name!r}",
            remedy=f"Use a target with at least {needed} chips per replica.",
        )
