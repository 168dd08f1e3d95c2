"""Plan of an operation, read from the JSON in a report: choice, steps, runners-up.

In: the JSON of an operation. Out: a `PlanRecord`, empty for an operation that has none,
as in genuine reports.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StepCost:
    """A step of an operation: its name, what it does, and all its cycles."""

    name: str
    what: str
    cycles: int


@dataclass(frozen=True)
class RunnerUp:
    """A plan not taken, and by what part its estimate is above the plan taken."""

    text: str
    estimated_cycles: int
    slower_by: float | None


@dataclass(frozen=True)
class PlanRecord:
    """How it is done in a sentence, what was chosen by key, and what was not."""

    how: str = ""
    choice: tuple[tuple[str, str], ...] = ()
    steps: tuple[StepCost, ...] = ()
    runners_up: tuple[RunnerUp, ...] = ()


NO_PLAN = PlanRecord()


def parse_plan(plan_json: str) -> PlanRecord:
    """The plan that was written with an operation."""
    # Genuine reports have no plans, and few rules have runners-up.
    raw: dict[str, Any] = json.loads(plan_json or "{}")
    choice = tuple((str(k), str(v)) for k, v in raw.get("choice", {}).items())
    estimate = _estimated_cycles(choice)
    return PlanRecord(
        str(raw.get("how", "")),
        choice,
        tuple(StepCost(*step) for step in raw.get("steps", ())),
        tuple(
            RunnerUp(text, cycles, cycles / estimate - 1 if estimate else None)
            for text, cycles in raw.get("runners_up", ())
        ),
    )


def _estimated_cycles(choice: tuple[tuple[str, str], ...]) -> int:
    """The estimate that runners-up are compared with; 0 where there is none."""
    # Rules name their estimate differently, but always with the unit at the end.
    numbers = (text for key, text in choice if key.endswith("cycles"))
    return next((int(text) for text in numbers if text.isdecimal()), 0)
