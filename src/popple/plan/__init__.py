"""Plan: a Graph and a Target become a Program, with the reasons for every choice."""

from popple.plan.io_tiles import IoOptions, Overlap
from popple.plan.layout import Progress
from popple.plan.lower import PlannedProgram, plan_graph
from popple.plan.opplan import OpPlan, PlanOptions, PlanRequest, Rule, TileMapping
from popple.plan.planner import Planner
from popple.plan.registry import FAMILY_RULES, RULES, describe_rule, get_rule

__all__ = [
    "FAMILY_RULES",
    "RULES",
    "IoOptions",
    "OpPlan",
    "Overlap",
    "PlanOptions",
    "PlanRequest",
    "PlannedProgram",
    "Planner",
    "Progress",
    "Rule",
    "TileMapping",
    "describe_rule",
    "get_rule",
    "plan_graph",
]
