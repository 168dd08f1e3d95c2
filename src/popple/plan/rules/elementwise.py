"""Element-wise ops: bring the operands to the result's tiles, then one pass."""

from __future__ import annotations

from popple.graph import DType, TensorType
from popple.plan.blocks.operands import (
    Operand,
    bring_operands,
    choose_result_mapping,
    request_operands,
)
from popple.plan.builder import Formula, PlanBuilder
from popple.plan.codelets.elementwise import (
    BINARY,
    FLOPS,
    GRADIENTS,
    TERNARY,
    UNARY,
    activation_grad_cycles,
    binary_cycles,
    scalar_cycles,
    unary_cycles,
)
from popple.plan.codelets.rates import multi_codelet
from popple.plan.codelets.sizes import (
    BINARY_CODE_BYTES,
    BINARY_STATE_BYTES,
    SCALAR_CODE_BYTES,
    SCALAR_STATE_BYTES,
    UNARY_CODE_BYTES,
    UNARY_STATE_BYTES,
    VECTOR_INNER_CODE_BYTES,
    VECTOR_STATE_BYTES,
)
from popple.plan.opplan import OpPlan, PlanRequest, Rule
from popple.program import Codelet


def plan_elementwise(request: PlanRequest) -> OpPlan:
    """Operands to the tiles of the result, then one pass of the op's codelet."""
    builder = PlanBuilder(request, "elementwise")
    kind, result = request.signature.kind, request.signature.outputs[0]
    operands = request_operands(builder)
    target = choose_result_mapping(builder, operands, result)
    wishes = bring_operands(builder, operands, target, result)
    codelet, cycles = choose_codelet(kind, operands, result, builder.num_workers)
    builder.elementwise(
        kind, codelet, target, result, cycles, FLOPS.get(kind, 1), len(operands) + 1
    )
    builder.note("codelet", codelet.name)
    builder.note("tiles", target.bytes_by_tile.num_nonzero)
    return builder.finish([target], wishes)


def choose_codelet(
    kind: str, operands: tuple[Operand, ...], result: TensorType, num_workers: int
) -> tuple[Codelet, Formula]:
    """The codelet for these operands and its cycles by elements on a tile."""
    # The operands decide: the result of a comparison is a bool, its work is not.
    dtype = operands[0].type.dtype if operands else result.dtype
    if kind in UNARY:
        name, state = f"popops::UnaryOp1D<{kind}", UNARY_STATE_BYTES
        codelet = multi_codelet(name, dtype, UNARY_CODE_BYTES, state)
        return codelet, lambda n: unary_cycles(kind, dtype, n, num_workers)
    if kind in GRADIENTS:
        name = kind.removesuffix("_grad")
        codelet = multi_codelet(f"popnn::NonLinearityGrad1D<{name}", dtype, 420)
        return codelet, lambda n: activation_grad_cycles(kind, dtype, n, num_workers)
    if kind in TERNARY:
        rate = TERNARY[kind].of(_numbers(operands, dtype))
        codelet = multi_codelet(f"popops::TernaryOp1D<{kind}", dtype, 380, 20)
        return codelet, lambda n: binary_cycles(rate, dtype, n, num_workers)
    return _choose_binary(kind, operands, result, num_workers)


def _numbers(operands: tuple[Operand, ...], default: DType) -> DType:
    """The element type of the operands that are not masks."""
    types = [o.type.dtype for o in operands if o.type.dtype is not DType.BOOL]
    return types[0] if types else default


def _choose_binary(
    kind: str, operands: tuple[Operand, ...], result: TensorType, num_workers: int
) -> tuple[Codelet, Formula]:
    dtype = operands[0].type.dtype
    rate = BINARY[kind].of(dtype)
    smallest = min(operand.type.num_elements for operand in operands)
    # A number known when compiling is no operand of the op, but is one of the vertex.
    if len(operands) == 1 or smallest == 1 < result.num_elements:
        codelet = multi_codelet(
            f"popops::BroadcastScalar1D<{kind}",
            dtype,
            SCALAR_CODE_BYTES,
            SCALAR_STATE_BYTES,
        )
        return codelet, lambda n: scalar_cycles(rate, dtype, n, num_workers)
    is_vector = any(not operand.is_full(result) for operand in operands)
    name = "BroadcastVectorInner" if is_vector else "BinaryOp1D"
    size = VECTOR_INNER_CODE_BYTES if is_vector else BINARY_CODE_BYTES
    state = VECTOR_STATE_BYTES if is_vector else BINARY_STATE_BYTES
    codelet = multi_codelet(f"popops::{name}<{kind}", dtype, size, state)
    return codelet, lambda n: binary_cycles(rate, dtype, n, num_workers)


RULES: dict[str, Rule] = dict.fromkeys(
    (*UNARY, *BINARY, *TERNARY, *GRADIENTS), plan_elementwise
)
