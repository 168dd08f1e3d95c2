"""Matrix products: planned as convolutions with kernel 1, rows as their field."""

from __future__ import annotations

import math

from popple.errors import PlanError
from popple.graph import DType
from popple.plan.conv import Operand, Roles, matmul_problem, plan_conv
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
    rank = len(result.shape)
    roles = Roles(
        field=Operand(0, left, rank - 1),
        weights=Operand(1, right, rank - 2),
        result=result,
        out_axis=rank - 1,
        rows_axis=rank - 2,
    )
    return plan_conv(request, "matmul", problem, roles)


RULES: dict[str, Rule] = {"matmul": plan_matmul}
