"""Operations of a report: cycles, bytes, flops and plan of every graph op."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from popple.graph import Graph, Op, all_ops, get_op
from popple.place import is_recomputed
from popple.plan import OpPlan, PlannedProgram, describe_rule
from popple.record.explanations import (
    StepRecord,
    record_steps_by_op,
    render_plan_json,
)
from popple.record.unowned import Unowned, costs_without_op
from popple.report import DebugContext, Operation, bound_by
from popple.sim import Cost, Simulation

_REMARKS = {
    "stash": "keeps an activation in a ring until its backward stage needs it",
    "restore": "takes a stashed activation out of its ring",
    "remote_load": "loads what lies off the chip",
    "remote_store": "stores what lies off the chip",
}
_RECOMPUTED = "recomputed: forward work done again for the backward pass"


def record_operations(
    graph: Graph, planned: PlannedProgram, simulation: Simulation
) -> list[Operation]:
    """One row for every op that takes time, and one for what belongs to none."""
    ops = list(all_ops(graph))
    counts = _executions_by_op(simulation)
    steps = record_steps_by_op(simulation)
    rows = [
        _operation(
            index,
            op,
            body,
            planned.plans[op.name],
            cost,
            counts[op.name],
            steps[op.name],
        )
        for index, (op, body) in enumerate(ops)
        if (cost := simulation.cost_by_op.get(op.name)) and cost.cycles
    ]
    for row, cost in costs_without_op(simulation).items():
        rows.append(_unowned(len(ops) + len(rows), row, cost, steps[row.name]))
    return rows


def _executions_by_op(simulation: Simulation) -> Mapping[str, int]:
    """How often each op runs: as often as the leaf of it that runs least.

    An op of a function stands in the program once for every chip that runs it.
    """
    counts: dict[tuple[str, str], int] = {}
    for row, leaf, count in zip(
        simulation.steps,
        simulation.timing.leaf_times,
        simulation.executions,
        strict=True,
    ):
        if leaf is not None:
            key = getattr(row.step, "op", ""), row.path.partition("/")[0]
            # Steps of an op may be in loops of its plan and run more often than the op
            # itself.
            counts[key] = min(counts.get(key, count), count)
    totals: Counter[str] = Counter()
    for (name, _), count in counts.items():
        totals[name] += count
    return totals


def _operation(
    index: int,
    op: Op,
    graph: Graph,
    plan: OpPlan,
    cost: Cost,
    num_executions: int,
    steps: list[StepRecord],
) -> Operation:
    temporary_bytes = sum(each.bytes_by_tile.total for each in plan.temporaries)
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
        exchange_cycles=cost.exchange_cycles,
        link_cycles=cost.link_cycles,
        host_cycles=cost.host_cycles,
        sync_cycles=cost.sync_cycles,
        # Rules that count flops of the whole op, not of vertices, leave none in the
        # steps.
        flops=cost.flops or plan.flops * num_executions,
        num_executions=num_executions,
        num_vertices=_num_vertices(plan),
        bound_by=bound_by(_classes(cost)),
        limited_by="memory" if plan.is_memory_bound else "",
        remark=_RECOMPUTED if is_recomputed(op) else _REMARKS.get(op.kind, ""),
        rule=plan.rule,
        memory_bytes=_result_bytes(graph, op) + temporary_bytes,
        temporary_bytes=temporary_bytes,
        plan_json=render_plan_json(describe_rule(op.kind), plan, steps),
        framework_op=str(op.attrs.get("framework_op", "")),
    )


def _classes(cost: Cost) -> dict[str, int]:
    return {
        "compute": cost.compute_cycles,
        "exchange": cost.exchange_cycles,
        "links": cost.link_cycles,
        "host": cost.host_cycles,
        "sync": cost.sync_cycles,
    }


def _num_vertices(plan: OpPlan) -> int:
    groups = [g for step in plan.steps for g in getattr(step, "vertices", ())]
    return sum(group.count_by_tile.total for group in groups)


def _result_bytes(graph: Graph, op: Op) -> int:
    """Bytes of the results that are not views of something else."""
    owned = [name for name in op.outputs if graph.root(name) == name]
    return sum(graph.type_of(name).num_bytes for name in owned)


def _unowned(
    index: int, row: Unowned, cost: Cost, steps: list[StepRecord]
) -> Operation:
    return Operation(
        id=index,
        name=row.name,
        kind=row.kind,
        family="copy",
        phase=row.phase,
        cycles=cost.cycles,
        compute_cycles=cost.compute_cycles,
        exchange_cycles=cost.exchange_cycles,
        link_cycles=cost.link_cycles,
        host_cycles=cost.host_cycles,
        sync_cycles=cost.sync_cycles,
        bound_by=bound_by(_classes(cost)),
        rule=row.kind,
        plan_json=render_plan_json(row.how, OpPlan(row.kind, ()), steps),
    )


def record_debug_contexts(graph: Graph) -> list[DebugContext]:
    """A context for every op, numbered as the ops are."""
    return [
        DebugContext(index, op.name, None, op.module, op.line)
        for index, (op, _) in enumerate(all_ops(graph))
    ]
