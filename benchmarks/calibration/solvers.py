"""Solvers: Cholesky decomposition and triangular systems, in blocks."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.calibration.params import Params
from benchmarks.calibration.price import Case, Once, zeros
from benchmarks.calibration.rows import NotExpressed

_SIDES = ("left", "right")


def cholesky_case(params: Params) -> Case:
    """A batch of decompositions; how they are blocked is the planner's choice."""
    size = params.integer("dim")
    params.integer("block", size)
    is_upper = not params.flag("lower", True)
    a = zeros(params.integer("batch", 1), size, size, dtype=params.dtype("type"))

    def decompose(a: Tensor) -> Tensor:
        return torch.linalg.cholesky(a, upper=is_upper)

    return Case(Once(decompose, {"a": a}))


def triangular_case(params: Params) -> Case:
    """A batch of systems, the triangle on the left or on the right."""
    batch, size = params.integer("batches", 1), params.integer("a-rank")
    width, side = params.integer("b-rank"), params.text("side", "left")
    params.integer("block", size)
    if side not in _SIDES:
        raise NotExpressed(f"side {side}")
    is_left, dtype = side == "left", params.dtype("type")
    shape = (size, width) if is_left else (width, size)
    operands = {
        "a": zeros(batch, size, size, dtype=dtype),
        "b": zeros(batch, *shape, dtype=dtype),
    }

    def solve(a: Tensor, b: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(a, b, upper=False, left=is_left)

    return Case(Once(solve, operands))
