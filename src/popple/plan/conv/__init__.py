"""The convolution planner, which serves matrix products as well."""

from popple.plan.conv.emit import own_chip, plan_choice, plan_conv
from popple.plan.conv.linear import find_linear, linear_of
from popple.plan.conv.problem import ConvProblem, matmul_problem
from popple.plan.conv.search import Choice, Solution, find_choice
from popple.plan.conv.wishes import Operand, Roles

__all__ = [
    "Choice",
    "ConvProblem",
    "Operand",
    "Roles",
    "Solution",
    "find_choice",
    "find_linear",
    "linear_of",
    "matmul_problem",
    "own_chip",
    "plan_choice",
    "plan_conv",
]
