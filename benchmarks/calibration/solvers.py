"""Solvers: Cholesky decomposition and triangular systems, in blocks."""

from __future__ import annotations

import torch
from torch import Tensor

import poptorch
from benchmarks.calibration.model_case import Case, Once, zeros
from benchmarks.calibration.params import Params
from benchmarks.calibration.rows import NotExpressed

_SIDES = ("left", "right")


def cholesky_case(params: Params) -> Case:
    """A batch of decompositions in blocks."""
    size = params.integer("dim")
    blocks = _blocks(params, size)
    is_upper = not params.flag("lower", True)
    a = zeros(params.integer("batch", 1), size, size, dtype=params.dtype("type"))

    def decompose(a: Tensor) -> Tensor:
        with blocks:
            return torch.linalg.cholesky(a, upper=is_upper)

    return Case(Once(decompose, {"a": a}))


def triangular_case(params: Params) -> Case:
    """A batch of systems with 1 on the diagonal, the tool's default, on either side."""
    batch, size = params.integer("batches", 1), params.integer("a-rank")
    width, side = params.integer("b-rank"), params.text("side", "left")
    blocks = _blocks(params, size)
    if side not in _SIDES:
        raise NotExpressed(f"side {side}")
    is_left, dtype = side == "left", params.dtype("type")
    shape = (size, width) if is_left else (width, size)
    operands = {
        "a": zeros(batch, size, size, dtype=dtype),
        "b": zeros(batch, *shape, dtype=dtype),
    }

    def solve(a: Tensor, b: Tensor) -> Tensor:
        with blocks:
            return torch.linalg.solve_triangular(
                a, b, upper=False, left=is_left, unitriangular=True
            )

    return Case(Once(solve, operands))


def _blocks(params: Params, size: int) -> poptorch.Attribute:
    """Ops made inside work on blocks of as many rows as the tool is told."""
    return poptorch.Attribute(poplin={"blockSize": params.integer("block", size)})
