"""Explanation of a cost: cycles by phase, plan, steps and memory of an op or layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from popple.report.parts.extras import Operation
from popple.report.query.plan_record import NO_PLAN, PlanRecord, RunnerUp
from popple.text_table import LEFT, Column, align_rows
from popple.units import render_bytes, render_count, render_percent

# Stored words, which queries compare, and what people read instead.
_BOUNDS = {
    "compute": "compute: the busiest tile's arithmetic",
    "exchange": "exchange between tiles",
    "links": "links between IPUs",
    "host": "the host's streams",
    "sync": "sync: tiles that wait for each other",
    "bubbles": "bubbles: IPUs that wait for others",
}
_LIMITS = {
    "memory": "a faster plan needs more memory of a tile than the options allow",
}
_INDENT = "  "
_NAME = Column(least=44, most=44)
_CYCLES, _PERCENT, _EXCESS = Column(True, 13), Column(True, 7), Column(True, 9)
_MAX_PARTS = 10


@dataclass(frozen=True)
class Explanation:
    """What is known about the cost of an operation, or of several taken together.

    `share` is the part of the run's time on the chips it uses. `parts` are the
    operations of a layer or of a whole run with their own explanations, costliest
    first, and empty for a single operation; where there are some, `operation` holds
    their sums and `plan` nothing. `time` is that of all IPUs by class, for a whole run.
    """

    operation: Operation
    share: float
    plan: PlanRecord = NO_PLAN
    parts: tuple[Explanation, ...] = ()
    time: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def name(self) -> str:
        """The operation's name, or the layer's path."""
        return self.operation.name

    @property
    def bound_by(self) -> str:
        """The class with most of the cycles."""
        return self.operation.bound_by

    @property
    def cycles_by_class(self) -> Mapping[str, int]:
        """Cycles of each class, of all IPUs that take part.

        Those of a whole run hold its bubbles, too.
        """
        return self.time or self.operation.cycles_by_class

    @property
    def result_bytes(self) -> int:
        """Bytes of the results on all tiles."""
        return self.operation.memory_bytes - self.operation.temporary_bytes

    def render(self) -> str:
        """A page of plain text."""
        blocks = [
            list(_head_lines(self)),
            list(_cycle_lines(self)),
            list(_plan_lines(self.operation.rule, self.plan)),
            list(_step_lines(self.plan)),
            list(_runner_up_lines(self.plan.runners_up)),
            list(_memory_lines(self)),
            list(_part_lines(self.parts)),
        ]
        return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"

    def to_json(self) -> dict[str, Any]:
        """The same as plain data."""
        operation = asdict(self.operation)
        # The same plan is below as data, instead of as text inside text.
        del operation["plan_json"]
        return {
            **operation,
            "share": self.share,
            "cycles_by_class": dict(self.cycles_by_class),
            "result_bytes": self.result_bytes,
            "plan": {**asdict(self.plan), "choice": dict(self.plan.choice)},
            "parts": [part.to_json() for part in self.parts],
        }


def _head_lines(explanation: Explanation) -> Iterator[str]:
    each = explanation.operation
    kinds = ", ".join(dict.fromkeys(filter(None, (each.kind, each.framework_op))))
    yield f"{each.name} ({kinds})" if kinds else each.name
    places = [
        each.phase,
        "" if each.chip is None else f"IPU {each.chip}",
        "" if each.stage is None else f"stage {each.stage}",
    ]
    facts = {
        "layer": each.module,
        "source": each.source_line,
        "what": each.remark,
        "runs": ", ".join(filter(None, places)),
        "times": render_count(each.num_executions) if each.num_executions > 1 else "",
    }
    yield from _aligned(facts)


def _cycle_lines(explanation: Explanation) -> Iterator[str]:
    classes = explanation.cycles_by_class
    own = explanation.operation.cycles
    cycles = sum(classes.values())
    share = f"{render_percent(explanation.share)} of the run"
    if explanation.time:
        yield f"Cycles: {render_count(cycles)}, of all IPUs"
    else:
        yield f"Cycles: {render_count(own)}, {share}"
        if cycles > own:
            yield f"  {render_count(cycles)} of all IPUs that take part"
        elif 0 < cycles < own:
            yield f"  {render_count(own - cycles)} of them beside longer steps"
    if bound := explanation.bound_by:
        yield f"  bound by {_BOUNDS.get(bound, bound)}"
    if limit := explanation.operation.limited_by:
        yield f"  limited by {limit}: {_LIMITS.get(limit, '')}"
    rows = (
        (name, render_count(count), render_percent(count / cycles))
        for name, count in classes.items()
        if count
    )
    # As wide as the longest class has letters, whichever classes there are.
    columns = (Column(least=8), Column(True, 15), _PERCENT)
    yield from align_rows(rows, columns, _INDENT)


def _plan_lines(rule: str, plan: PlanRecord) -> Iterator[str]:
    if not rule:
        return
    yield f"Plan, by the rule {rule}"
    if plan.how:
        yield f"  {plan.how}"
    yield from _aligned({key.replace("_", " "): text for key, text in plan.choice})


def _step_lines(plan: PlanRecord) -> Iterator[str]:
    if not plan.steps:
        return
    yield "Steps"
    rows = ((step.name, render_count(step.cycles), step.what) for step in plan.steps)
    columns = (Column(most=_NAME.most), _CYCLES, LEFT)
    yield from align_rows(rows, columns, _INDENT)


def _runner_up_lines(runners_up: tuple[RunnerUp, ...]) -> Iterator[str]:
    if not runners_up:
        return
    yield "Plans not taken, by estimate"
    rows = [
        (render_count(each.estimated_cycles), *_excess(each), each.text)
        for each in runners_up
    ]
    # The plan taken has an estimate to compare with, or has none: all rows are alike.
    between = [_EXCESS for _ in _excess(runners_up[0])]
    yield from align_rows(rows, (_CYCLES, *between, LEFT), _INDENT)


def _excess(runner_up: RunnerUp) -> list[str]:
    """By how much a plan is above the plan taken: one cell, or none if unknown."""
    part = runner_up.slower_by
    return [] if part is None else [f"{100 * part:+.1f} %"]


def _memory_lines(explanation: Explanation) -> Iterator[str]:
    each = explanation.operation
    if not each.memory_bytes:
        return
    # Ops run one after the other: their sum says more than is ever in memory.
    sharing = ", never all at once" if len(explanation.parts) > 1 else ""
    yield "Memory on all tiles"
    yield from _aligned(
        {
            "results": render_bytes(explanation.result_bytes),
            "temporaries": render_bytes(each.temporary_bytes) + sharing,
        }
    )


def _part_lines(parts: tuple[Explanation, ...]) -> Iterator[str]:
    if not parts:
        return
    shown, num_left = parts[:_MAX_PARTS], len(parts) - _MAX_PARTS
    heading = ("operation", "cycles", "of run", "bound by")
    rows = (
        (
            part.name,
            render_count(part.operation.cycles),
            render_percent(part.share),
            part.bound_by,
        )
        for part in shown
    )
    columns = (_NAME, _CYCLES, _PERCENT, LEFT)
    yield from align_rows([heading, *rows], columns, _INDENT)
    if num_left > 0:
        yield f"  and {render_count(num_left)} more"


def _aligned(facts: Mapping[str, str]) -> Iterator[str]:
    """Labels and texts in two columns; facts without a text are left out."""
    kept = ((label, text) for label, text in facts.items() if text)
    yield from align_rows(kept, (LEFT, LEFT), _INDENT)
