"""Explanations of op costs as JSON: plan chosen, plans not taken, steps with cycles.

In: the plan of an op and the times of the steps made from it. Out: one JSON text for
each op, which `popple explain` reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from popple.plan import OpPlan
from popple.program import (
    Control,
    Exchange,
    Execute,
    GlobalExchange,
    Leaf,
    StreamCopy,
    Sync,
    label_of,
)
from popple.quick import quick
from popple.record.unowned import row_of
from popple.sim import LeafTime, Simulation
from popple.units import render_bytes, render_count


@quick
@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step of an op: its name, what it does in words, and all its cycles."""

    name: str
    what: str
    cycles: int

    def __add__(self, other: StepRecord) -> StepRecord:
        return StepRecord(self.name, self.what, self.cycles + other.cycles)


def record_steps_by_op(simulation: Simulation) -> Mapping[str, list[StepRecord]]:
    """The leaf steps of every op in their order, those of one name added up.

    Those of no op are under the name of their row.
    """
    found: dict[str, dict[str, StepRecord]] = {}
    # Steps that do the same share their time, and so the words about it.
    texts: dict[int, str] = {}
    for row, leaf, count in zip(
        simulation.steps,
        simulation.timing.leaf_times,
        simulation.executions,
        strict=True,
    ):
        if leaf is None or not count or isinstance(row.step, Control):
            continue
        if (text := texts.get(id(leaf))) is None:
            text = texts[id(leaf)] = _describe(row.step, leaf)
        # Labels begin with the op, which the reader has asked for.
        name = label_of(row.step).removeprefix(f"{row.step.op}/")
        record = StepRecord(name, text, leaf.cost.cycles * count)
        known = found.setdefault(row.step.op or row_of(row.step).name, {})
        # An op that runs in parts, or on several chips, has steps of one name many
        # times.
        earlier = known.get(record.name)
        known[record.name] = earlier + record if earlier else record
    return {op: list(steps.values()) for op, steps in found.items()}


def _describe(step: Leaf, leaf: LeafTime) -> str:
    tiles = f"{render_count(leaf.cycles_by_tile.num_nonzero)} tiles"
    if isinstance(step, Execute):
        names = {group.codelet.name for group in step.compute_set.vertices}
        return f"{', '.join(sorted(names))} on {tiles}"
    if isinstance(step, Exchange):
        most = max(step.sent_by_tile.maximum, step.received_by_tile.maximum)
        return f"exchange of {tiles}, at most {render_bytes(most)} each"
    if isinstance(step, GlobalExchange):
        return f"{render_bytes(leaf.cost.link_bytes)} over links"
    if isinstance(step, StreamCopy):
        return f"{render_bytes(leaf.cost.host_bytes)} between host and {tiles}"
    return "sync" if isinstance(step, Sync) else "nothing"


def render_plan_json(how: str, plan: OpPlan, steps: list[StepRecord]) -> str:
    """How the op is planned in a sentence, its choice, runners-up and steps."""
    return json.dumps(
        {
            "how": how,
            "choice": dict(plan.choice),
            "runners_up": list(plan.runners_up),
            "steps": [[step.name, step.what, step.cycles] for step in steps],
        }
    )
