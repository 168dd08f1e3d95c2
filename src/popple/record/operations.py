"""Operations of a report: cycles, bytes, flops and plan of every graph op."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from popple.graph import Graph, Op, all_ops, get_op
from popple.place import is_recomputed
from popple.plan import OpPlan, PlannedProgram, describe_rule
from popple.program import Control
from popple.record.explanations import (
    StepRecord,
    record_steps_by_op,
    render_plan_json,
)
from popple.record.unowned import Unowned, costs_without_op, row_of
from popple.report import DebugContext, Operation, bound_by
from popple.sim import NO_CYCLES, ClassCycles, Cost, Simulation

_REMARKS = {
    "stash": "keeps an activation in a ring until its backward stage needs it",
    "restore": "takes a stashed activation out of its ring",
    "remote_load": "loads what lies off the chip",
    "remote_store": "stores what lies off the chip",
}
_BESIDE = "runs beside longer steps and takes no time of its own"
_RECOMPUTED = "recomputed: forward work done again for the backward pass"


def record_operations(
    graph: Graph, planned: PlannedProgram, simulation: Simulation
) -> list[Operation]:
    """One row for every op that takes time, and one for what belongs to none."""
    ops = list(all_ops(graph))
    counts = _executions_by_op(simulation)
    steps = record_steps_by_op(simulation)
    shares = _shares_by_name(simulation)
    rows = [
        _operation(
            index,
            op,
            body,
            planned.plans[op.name],
            cost,
            shares[op.name],
            counts[op.name],
            steps[op.name],
        )
        for index, (op, body) in enumerate(ops)
        if (cost := simulation.cost_by_op.get(op.name)) and cost.cycles
    ]
    for row, cost in costs_without_op(simulation).items():
        number, share = len(ops) + len(rows), shares[row.name]
        rows.append(_unowned(number, row, cost, share, steps[row.name]))
    return rows


def _shares_by_name(simulation: Simulation) -> Mapping[str, ClassCycles]:
    """Of the time of all chips what each op takes, or each row without an op."""
    sums: dict[str, ClassCycles] = {}
    for step_id, (p, q, r, s, t) in simulation.time_shares.by_step.items():
        step = simulation.steps[step_id].step
        if isinstance(step, Control):
            continue
        name = step.op or row_of(step).name
        a, b, c, d, e = sums.get(name, NO_CYCLES)
        sums[name] = (a + p, b + q, c + r, d + s, e + t)
    return sums


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
    share: ClassCycles,
    num_executions: int,
    steps: list[StepRecord],
) -> Operation:
    temporary_bytes = sum(each.bytes_by_tile.total for each in plan.temporaries)
    compute, exchange, links, host, sync = share
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
        compute_cycles=compute,
        exchange_cycles=exchange,
        link_cycles=links,
        host_cycles=host,
        sync_cycles=sync,
        # Rules that count flops of the whole op, not of vertices, leave none in the
        # steps.
        flops=cost.flops or plan.flops * num_executions,
        num_executions=num_executions,
        num_vertices=_num_vertices(plan),
        bound_by=_bound_by(share, cost),
        limited_by="memory" if plan.is_memory_bound else "",
        remark=_remark(op, share),
        rule=plan.rule,
        memory_bytes=_result_bytes(graph, op) + temporary_bytes,
        temporary_bytes=temporary_bytes,
        plan_json=render_plan_json(describe_rule(op.kind), plan, steps),
        framework_op=str(op.attrs.get("framework_op", "")),
    )


def _bound_by(share: ClassCycles, cost: Cost) -> str:
    # What runs beside longer steps takes no time, but is bound by something itself.
    own = (
        cost.compute_cycles,
        cost.exchange_cycles,
        cost.link_cycles,
        cost.host_cycles,
        cost.sync_cycles,
    )
    words = ("compute", "exchange", "links", "host", "sync")
    return bound_by(dict(zip(words, share if any(share) else own, strict=True)))


def _remark(op: Op, share: ClassCycles) -> str:
    words = [
        _RECOMPUTED if is_recomputed(op) else _REMARKS.get(op.kind, ""),
        "" if any(share) else _BESIDE,
    ]
    return "; ".join(filter(None, words))


def _num_vertices(plan: OpPlan) -> int:
    groups = [g for step in plan.steps for g in getattr(step, "vertices", ())]
    return sum(group.count_by_tile.total for group in groups)


def _result_bytes(graph: Graph, op: Op) -> int:
    """Bytes of the results that are not views of something else."""
    owned = [name for name in op.outputs if graph.root(name) == name]
    return sum(graph.type_of(name).num_bytes for name in owned)


def _unowned(
    index: int, row: Unowned, cost: Cost, share: ClassCycles, steps: list[StepRecord]
) -> Operation:
    compute, exchange, links, host, sync = share
    return Operation(
        id=index,
        name=row.name,
        kind=row.kind,
        family="copy",
        phase=row.phase,
        cycles=cost.cycles,
        compute_cycles=compute,
        exchange_cycles=exchange,
        link_cycles=links,
        host_cycles=host,
        sync_cycles=sync,
        bound_by=_bound_by(share, cost),
        remark="" if any(share) else _BESIDE,
        rule=row.kind,
        plan_json=render_plan_json(row.how, OpPlan(row.kind, ()), steps),
    )


def record_debug_contexts(graph: Graph) -> list[DebugContext]:
    """A context for every op, numbered as the ops are."""
    return [
        DebugContext(index, op.name, None, op.module, op.line)
        for index, (op, _) in enumerate(all_ops(graph))
    ]
