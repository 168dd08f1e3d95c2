"""Matrix products: planned as convolutions with kernel 1, rows as their field."""

from __future__ import annotations

import math

from popple.errors import PlanError
from popple.graph import DType, LinearProduct
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
    if (product := request.signature.notes.linear) is not None:
        return _plan_linear(request, product, problem)
    return plan_conv(request, "matmul", problem, _roles(request))


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
