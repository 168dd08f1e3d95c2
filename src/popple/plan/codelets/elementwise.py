"""Element-wise codelets: cycles per tile from tables of rates.

Source: PopLibs popops/popopsCycleEstimators.hpp for unary, binary and ternary
operators, and popnn performance estimation for activations and their gradients, but for
GELU, whose figures there wait to be verified: instructions of its loops in release 3.3
(popnn/codelets/asm/NonLinearity1D_gelu.S, NonLinearityGradLoop_gelu.S), with 5 cycles
for a tanh and 2 for an exponential of floats.
"""

from __future__ import annotations

from popple.graph import DType
from popple.plan.codelets.rates import Rate, Rates, num_lanes, rates
from popple.units import ceil_div

UNARY: dict[str, Rates] = {
    "exp": rates((6, 2), (4, 4)),
    "log": rates((12, 2), (4, 4)),
    "tanh": rates((12, 2), (4, 4)),
    "sigmoid": rates((12, 2), (6, 4)),
    "relu": rates((3, 2), (3, 4)),
    "sqrt": rates((10, 2), (23, 4), (114, 1)),
    "rsqrt": rates((8, 2), (19, 4)),
    "reciprocal": rates((6, 2), (15, 4), (40, 1)),
    "erf": rates((41, 1), (13, 1)),
    "square": rates((2, 2), (2, 4), (5, 2)),
    "sin": rates((2300, 1), (25, 1)),  # float calls the library
    "cos": rates((2300, 1), (25, 1)),
    "tan": rates((5100, 1), (5700, 1)),
    "gelu": rates((21, 2), (8, 4)),
    "gelu_erf": rates((22, 1), (16, 1)),
    "silu": rates((11, 2), (5, 4)),
    # Compiled from C++: 4 cycles more than the operation takes.
    "neg": rates((2, 2), (2, 4), (6, 1)),
    "abs": rates((5, 1), (5, 1), (6, 1)),
    "sign": rates((9, 2), (9, 4), (9, 1)),
    "round": rates((6, 2), (6, 4)),
    "floor": rates((6, 2), (6, 4)),
    "ceil": rates((6, 2), (6, 4)),
    "is_nan": rates((7, 2), (7, 4)),
    "is_finite": rates((9, 2), (9, 4)),
    "logical_not": rates((21, 1), (21, 1), (21, 1)),
    "bitwise_not": rates((5, 2), (5, 2), (5, 2)),
    "expm1": rates((8, 1), (9, 4)),
    "log1p": rates((22, 2), (22, 4)),
    "clamp": rates((4, 2), (5, 4), (8, 1)),
    "hardtanh": rates((4, 2), (5, 4), (8, 1)),
    # Assumed: the sum of the operations they are made of.
    "leaky_relu": rates((5, 2), (5, 4)),
    "elu": rates((14, 2), (12, 4)),
    "softplus": rates((20, 2), (12, 4)),
    "hardsigmoid": rates((7, 2), (8, 4)),
    "hardswish": rates((9, 2), (10, 4)),
}

_COMPARE = rates((14, 4), (9, 4), (22, 4))
_COMPARE_OR_EQUAL = rates((14, 4), (9, 4), (26, 4))
_LOGIC = rates((5, 4), (5, 4), (5, 4))
_BITS = rates((7, 1), (7, 1), (7, 1))
_ADD = rates((3, 2), (3, 4), (7, 1))

BINARY: dict[str, Rates] = {
    "add": _ADD,
    "sub": _ADD,
    "mul": _ADD,
    "div": rates((10, 2), (21, 4), (277, 1)),
    "maximum": rates((3, 2), (4, 4), (7, 1)),
    "minimum": rates((3, 2), (4, 4), (7, 1)),
    **dict.fromkeys(("equal", "not_equal", "less", "greater"), _COMPARE),
    **dict.fromkeys(("less_equal", "greater_equal"), _COMPARE_OR_EQUAL),
    # Calls of the library, averages over random operands.
    "pow": rates((312, 1), (325, 1), (32, 1)),
    "remainder": rates((133, 2), (300, 4), (292, 1)),
    "atan2": rates((272, 2), (578, 4)),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), _LOGIC),
    **dict.fromkeys(
        (
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "shift_left",
            "shift_right",
        ),
        _BITS,
    ),
}

TERNARY: dict[str, Rates] = {
    "select": rates((5, 1), (5, 1), (5, 1)),
    "fused_multiply_add": rates((4, 2), (4, 4)),  # assumed: one load more than add
    "fused_divide_add": rates((11, 2), (22, 4)),  # assumed: div and the sum
    "lerp": rates((5, 2), (5, 4)),  # assumed: subtract and multiply-add
}

_GRAD = rates((3, 2), (3, 4))
GRADIENTS: dict[str, Rates] = {
    "relu_grad": _GRAD,
    "tanh_grad": _GRAD,
    "sigmoid_grad": _GRAD,
    "gelu_grad": rates((25, 2), (15, 4)),
    "silu_grad": rates((15, 2), (9, 4)),
    # Assumed: the mask of a comparison and a product.
    "leaky_relu_grad": rates((5, 2), (5, 4)),
    "hardtanh_grad": rates((5, 2), (5, 4)),
    "hardsigmoid_grad": rates((5, 2), (5, 4)),
    "hardswish_grad": rates((9, 2), (9, 4)),
    "elu_grad": rates((12, 2), (10, 4)),
    "softplus_grad": rates((15, 2), (9, 4)),
}

FLOPS = {"fused_multiply_add": 2, "fused_divide_add": 2, "lerp": 3}
"""Floating-point operations per element where there is more than one."""


def unary_cycles(
    kind: str,
    dtype: DType,
    num_elements: int,
    num_workers: int,
    is_in_place: bool = False,
) -> int:
    """UnaryOp1D: 11 + 9 for the supervisor, then a worker's prologue and its loop.

    The prologue takes 17 (exp 33) worker cycles, in place 55.
    """
    prologue = 33 if kind == "exp" else 17
    prologue = 55 if is_in_place else prologue
    loop = UNARY[kind].of(dtype).worker_cycles(num_elements, num_workers)
    return 20 + num_workers * (prologue + loop)


def binary_cycles(
    rate: Rate,
    dtype: DType,
    num_elements: int,
    num_workers: int,
    is_in_place: bool = False,
) -> int:
    """BinaryOp1D: 11 for the supervisor, then a worker's prologue and its loop.

    The prologue takes 26 (half) or 29 worker cycles, in place 58.
    """
    prologue = 26 if dtype.num_bytes == 2 else 29
    prologue = 58 if is_in_place else prologue
    loop = rate.worker_cycles(num_elements, num_workers)
    return 11 + num_workers * (prologue + loop)


def scalar_cycles(rate: Rate, dtype: DType, num_elements: int, num_workers: int) -> int:
    """BroadcastScalar: one operand stays in a register, which saves its load."""
    cycles = max(2, rate.cycles - 1)
    loop = Rate(cycles, rate.group).worker_cycles(num_elements, num_workers)
    return 11 + num_workers * (20 + loop)


def vector_outer_cycles(
    num_rows: int, num_columns: int, dtype: DType, num_workers: int
) -> int:
    """BroadcastVectorOuter: 2 per word, rows or the columns of each row dealt out.

    A worker spends 7 cycles on a row of its own, 25 on its part of a shared row.
    """
    rows = ceil_div(num_rows, num_workers)
    words = ceil_div(num_columns, num_lanes(dtype))
    # Dealt out by rows or by columns: PopLibs has a vertex for each.
    by_row = rows * (7 + 2 * words)
    by_column = num_rows * (25 + 2 * ceil_div(words, num_workers))
    return 11 + num_workers * (15 + min(by_row, by_column))


def activation_grad_cycles(
    kind: str, dtype: DType, num_elements: int, num_workers: int
) -> int:
    """NonLinearityGrad: 9 for the supervisor, about 20 before a worker's loop."""
    loop = GRADIENTS[kind].of(dtype).worker_cycles(num_elements, num_workers)
    return 9 + num_workers * (20 + loop)


def cast_cycles(
    source: DType, result: DType, num_elements: int, num_workers: int
) -> int:
    """Cast1D: 1 cycle per 2 elements to float, 2 per 4 to half, integers 4 each."""
    if not (source.is_float and result.is_float):
        rate = Rate(4, 1)
    else:
        rate = Rate(1, 2) if result is DType.F32 else Rate(2, 4)
    loop = rate.worker_cycles(num_elements, num_workers)
    return 12 + num_workers * (18 + 19 + loop)


def fill_cycles(dtype: DType, num_elements: int, num_workers: int) -> int:
    """Fill: 24 (half 26, bytes 39) and one store per word, shared by the workers."""
    prologue = {4: 24, 2: 26, 1: 39}[dtype.num_bytes]
    loop = Rate(1, num_lanes(dtype)).worker_cycles(num_elements, num_workers)
    return num_workers * (prologue + loop)
