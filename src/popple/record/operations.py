"""What every op of the graph costs, with the plan behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from popple.graph import Graph, Op, get_op
from popple.plan import OpPlan, PlannedProgram
from popple.report import DebugContext, Operation
from popple.sim import Cost, Simulation

_NO_OP = "host streams"


def record_operations(
    graph: Graph, planned: PlannedProgram, simulation: Simulation
) -> list[Operation]:
    """One row for every op that takes time, and one for what belongs to none."""
    counts = _executions_by_op(simulation)
    costs = simulation.cost_by_op
    rows = [
        _operation(index, op, graph, planned.plans[op.name], costs[op.name], counts)
        for index, op in enumerate(graph.ops)
        if op.name in costs
    ]
    if rest := costs.get(""):
        rows.append(_other_steps(len(graph.ops), rest))
    return rows


def _executions_by_op(simulation: Simulation) -> Mapping[str, int]:
    """How often each op runs: as often as the leaf of it that runs least."""
    counts: dict[str, int] = {}
    for row, leaf, count in zip(
        simulation.steps,
        simulation.timing.leaf_times,
        simulation.executions,
        strict=True,
    ):
        if leaf is not None:
            name = getattr(row.step, "op", "")
            counts[name] = min(counts.get(name, count), count)
    return counts


def _operation(
    index: int,
    op: Op,
    graph: Graph,
    plan: OpPlan,
    cost: Cost,
    counts: Mapping[str, int],
) -> Operation:
    return Operation(
        id=index,
        name=op.name,
        kind=op.kind,
        family=get_op(op.kind).family,
        phase=op.phase.value,
        chip=op.chip,
        stage=op.stage,
        module=op.module,
        source_line=op.line,
        cycles=cost.cycles,
        compute_cycles=cost.compute_cycles,
        exchange_cycles=cost.exchange_cycles + cost.link_cycles + cost.host_cycles,
        sync_cycles=cost.sync_cycles,
        flops=cost.flops or plan.flops * counts[op.name],
        num_executions=counts[op.name],
        num_vertices=_num_vertices(plan),
        bound_by=bound_by(cost),
        rule=plan.rule,
        memory_bytes=_memory_bytes(graph, op, plan),
        plan_json=json.dumps(
            {"choice": dict(plan.choice), "runners_up": list(plan.runners_up)}
        ),
        framework_op=str(op.attrs.get("framework_op", "")),
    )


def bound_by(cost: Cost) -> str:
    """The phase that takes most of the cycles."""
    phases = {
        "compute": cost.compute_cycles,
        "exchange": cost.exchange_cycles,
        "links": cost.link_cycles,
        "host": cost.host_cycles,
        "sync": cost.sync_cycles,
    }
    return max(phases, key=lambda phase: phases[phase])


def _num_vertices(plan: OpPlan) -> int:
    groups = [g for step in plan.steps for g in getattr(step, "vertices", ())]
    return sum(group.count_by_tile.total for group in groups)


def _memory_bytes(graph: Graph, op: Op, plan: OpPlan) -> int:
    """Bytes of the op's own results and temporaries."""
    owned = [name for name in op.outputs if graph.root(name) == name]
    results = sum(graph.type_of(name).num_bytes for name in owned)
    return results + sum(each.bytes_by_tile.total for each in plan.temporaries)


def _other_steps(index: int, cost: Cost) -> Operation:
    return Operation(
        id=index,
        name=_NO_OP,
        kind="stream",
        family="copy",
        cycles=cost.cycles,
        compute_cycles=cost.compute_cycles,
        exchange_cycles=cost.exchange_cycles + cost.link_cycles + cost.host_cycles,
        sync_cycles=cost.sync_cycles,
        bound_by=bound_by(cost),
        rule="stream",
    )


def record_debug_contexts(graph: Graph) -> list[DebugContext]:
    """A context for every op, numbered as the ops are."""
    return [
        DebugContext(index, op.name, None, op.module, op.line)
        for index, op in enumerate(graph.ops)
    ]
