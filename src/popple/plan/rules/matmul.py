"""Matrix products: planned as convolutions with kernel 1, rows as their field."""

from __future__ import annotations

import math
from dataclasses import replace

from popple.errors import PlanError
from popple.graph import DType, LinearProduct, SerialSplit, SplitDimension, TensorType
from popple.plan.blocks.broadcast import add_binary
from popple.plan.builder import PlanBuilder
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
from popple.plan.mapping import mapping_like
from popple.plan.opplan import OpPlan, PlanRequest, Rule
from popple.units import ceil_div


def plan_matmul(request: PlanRequest) -> OpPlan:
    """A convolution with kernel 1, one conv group for each of the leading indices."""
    left, right = request.signature.inputs
    result = request.signature.outputs[0]
    if 0 in (*left.shape, *right.shape):
        raise PlanError(
            f"{request.signature} has an empty dimension.",
            remedy="A matrix product needs at least one row, column and inner element.",
        )
    split = request.signature.notes.serial_split
    if split is not None and split.factor > 1:
        return _plan_in_parts(request, split)
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


def _plan_in_parts(request: PlanRequest, split: SerialSplit) -> OpPlan:
    """A product in as many parts as the program says, one after the other.

    As graphcore/popart willow/src/transforms/serializematmuls.cpp has it: a slice of
    the operands that are cut, a product that is planned by itself, and its result put
    in its place or, if the inner dimension is cut, added to those before.
    """
    part = _part_of(request, split)
    plan = plan_matmul(part)
    builder = PlanBuilder(request, "matmul")
    body = builder.part()
    made = body.embed("part", plan)
    result = request.signature.outputs[0]
    if split.dimension is SplitDimension.INNER:
        product = body.position - 1
        add_binary(body, "add", result, made, "ScaledAdd")
        body.hold("product", made.bytes_by_tile, product)
    builder.repeat("loop buffers", split.factor, body, interleaved="partials")
    builder.note("parts", split.factor)
    for key, text in plan.choice:
        builder.note(key, text)
    wishes = tuple(
        wish and mapping_like(wish, whole)
        for wish, whole in zip(plan.inputs, request.signature.inputs, strict=True)
    )
    return builder.finish(
        [mapping_like(made, result)],
        wishes,
        is_memory_bound=plan.is_memory_bound,
        is_interleaved=plan.is_interleaved,
    )


def _part_of(request: PlanRequest, split: SerialSplit) -> PlanRequest:
    """The product of one part, of operands that lie as the whole ones do."""
    whole = request.signature
    axes = {
        SplitDimension.ROWS: (-2, None, -2),
        SplitDimension.INNER: (-1, -2, None),
        SplitDimension.COLUMNS: (None, -1, -1),
    }[split.dimension]
    left, right, result = (
        _cut(tensor, axis, split.factor)
        for tensor, axis in zip((*whole.inputs, *whole.outputs), axes, strict=True)
    )
    signature = replace(
        whole,
        inputs=(left, right),
        outputs=(result,),
        notes=replace(whole.notes, serial_split=None, linear=None),
    )
    given = tuple(
        mapping and mapping_like(mapping, tensor)
        for mapping, tensor in zip(request.inputs, signature.inputs, strict=True)
    )
    return replace(request, signature=signature, inputs=given)


def _cut(tensor: TensorType, axis: int | None, factor: int) -> TensorType:
    if axis is None:
        return tensor
    shape = list(tensor.shape)
    shape[axis] = ceil_div(shape[axis], factor)
    return TensorType(tensor.dtype, tuple(shape))


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
