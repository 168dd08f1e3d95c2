"""The convolution planner, which serves matrix products as well."""

from popple.plan.conv.emit import Operand, Roles, plan_conv
from popple.plan.conv.problem import ConvProblem, matmul_problem
from popple.plan.conv.search import Choice, Solution, find_choice

__all__ = [
    "Choice",
    "ConvProblem",
    "Operand",
    "Roles",
    "Solution",
    "find_choice",
    "matmul_problem",
    "plan_conv",
]
