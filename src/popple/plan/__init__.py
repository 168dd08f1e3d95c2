"""Plan: a Graph and a Target become a Program, with the reasons for every choice."""

from popple.plan.lowering.lower import PlannedProgram, plan_graph
from popple.plan.lowering.plan_ops import Progress
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping
from popple.plan.options import IoOptions, Overlap, PlanOptions
from popple.plan.planner import Planner, PlanStore
from popple.plan.registry import FAMILY_RULES, RULES, describe_rule, get_rule

__all__ = [
    "FAMILY_RULES",
    "RULES",
    "IoOptions",
    "OpPlan",
    "Overlap",
    "PlanOptions",
    "PlanRequest",
    "PlanStore",
    "PlannedProgram",
    "Planner",
    "Progress",
    "Rule",
    "TileMapping",
    "describe_rule",
    "get_rule",
    "plan_graph",
]
