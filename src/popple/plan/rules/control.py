"""Calls, loops and branches: what they run is planned with the graph.

A rule sees one op; functions belong to the graph. `lowering/plan_ops.py` plans each
function when an op first runs it, and `lowering/control.py` makes the steps.
"""

from __future__ import annotations

from popple.errors import PlanError
from popple.plan.opplan import OpPlan, PlanRequest, Rule


def plan_control(request: PlanRequest) -> OpPlan:
    """Arguments are copied in, the function runs, results are copied out."""
    raise PlanError(
        f"{request.signature.kind} runs a function, which only its graph knows.",
        remedy="Plan the graph as a whole: plan_graph(graph, target).",
    )


RULES: dict[str, Rule] = dict.fromkeys(
    ("call", "repeat", "while", "branch"), plan_control
)
