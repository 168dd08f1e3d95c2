"""Matrix products: planned as convolutions with kernel 1, rows as their field."""

from __future__ import annotations

import math

from popple.errors import PlanError
from popple.graph import DType, LinearProduct, SerialSplit, SplitDimension
from popple.plan.conv import (
    ConvProblem,
    Operand,
    Roles,
    find_linear,
    linear_of,
    matmul_problem,
    own_chip,
    plan_choice,
    plan_conv,
)
from popple.plan.conv.precision import choose_partials, widest_type
from popple.plan.conv.search import find_serial_choice
from popple.plan.conv.splits import Serial
from popple.plan.opplan import OpPlan, PlanRequest, Rule


def plan_matmul(request: PlanRequest) -> OpPlan:
    """A convolution with kernel 1, one conv group for each of the leading indices."""
    left, right = request.signature.inputs
    result = request.signature.outputs[0]
    if 0 in (*left.shape, *right.shape):
        raise PlanError(
            f"{request.signature} has an empty dimension.",
            remedy="A matrix product needs at least one row, column and inner element.",
        )
    *batch, rows, inner = left.shape
    dtype: DType = widest_type(left.dtype, right.dtype)
    problem = matmul_problem(
        math.prod(batch),
        (rows, inner, right.shape[-1]),
        dtype,
        choose_partials(dtype, request.options.partials),
        result.dtype,
    )
    notes = request.signature.notes
    if (split := notes.serial_split) is not None and split.factor > 1:
        return _plan_in_parts(request, split, problem)
    if (product := notes.linear) is not None:
        return _plan_linear(request, product, problem)
    return plan_conv(request, "matmul", problem, _roles(request))


def _plan_in_parts(
    request: PlanRequest, split: SerialSplit, problem: ConvProblem
) -> OpPlan:
    """A product in as many parts as the program says, one after the other.

    Rows are cut as columns of the product the other way round.
    """
    is_turned = split.dimension is SplitDimension.ROWS
    if is_turned:
        shape = problem.out_channels, problem.in_channels, problem.num_rows
        types = problem.dtype, problem.partials, problem.output
        problem = matmul_problem(problem.groups, shape, *types)
    is_inner = split.dimension is SplitDimension.INNER
    serial = Serial(in_parts=split.factor) if is_inner else Serial(split.factor)
    memory = request.options.memory_proportion
    choice = find_serial_choice(problem, own_chip(request), memory, serial)
    return plan_choice(request, "matmul", problem, _roles(request, is_turned), choice)


def _plan_linear(
    request: PlanRequest, product: LinearProduct, problem: ConvProblem
) -> OpPlan:
    """A product of a linear layer in training, planned with the others."""
    which, is_turned = product.part, product.is_turned
    layer = linear_of(problem, which, is_turned)
    memory = request.options.memory_proportion
    plan = find_linear(layer, own_chip(request), memory)
    problem, choice = layer.problem(which), plan.choices[which]
    return plan_choice(request, "matmul", problem, _roles(request, is_turned), choice)


def _roles(request: PlanRequest, is_turned: bool = False) -> Roles:
    """Rows of the left operand are the field; turned, columns of the right one."""
    left, right = request.signature.inputs
    result = request.signature.outputs[0]
    rank = len(result.shape)
    # Vertices sum along input channels, so these are wanted innermost: columns of the
    # left operand, rows of the right one.
    over = Operand(0, left, rank - 1)
    down = Operand(1, right, rank - 2)
    if is_turned:
        return Roles(down, over, result, out_axis=rank - 2, rows_axis=rank - 1)
    return Roles(over, down, result, out_axis=rank - 1, rows_axis=rank - 2)


RULES: dict[str, Rule] = {"matmul": plan_matmul}
