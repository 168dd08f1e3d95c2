"""Solver codelets: one small matrix on one worker.

Source: PopLibs poplin/poplinCycleEstimators.cpp (Cholesky, TriangularInverse,
TriangularSolve). Loops over i, over pairs and over triples of rows have a cost each.
"""

from __future__ import annotations

from popple.graph import DType
from popple.plan.codelets.rates import type_name
from popple.program import Codelet, Thread


def solve_codelet(name: str, dtype: DType) -> Codelet:
    """A codelet that one worker runs: `poplin::Cholesky<float>`; size estimated."""
    full_name = f"poplin::{name}<{type_name(dtype)}>"
    return Codelet(full_name, Thread.WORKER, 300, 12)


def _pairs(dim: int) -> int:
    return dim * (dim - 1) // 2


def _triples(dim: int) -> int:
    return (dim + 1) * dim * (dim - 1) // 6


def cholesky_cycles(dim: int) -> int:
    """Worker cycles to decompose one matrix in place."""
    return 1 + 11 * dim + 18 * (_pairs(dim) + dim) + 5 * _triples(dim)


def inverse_cycles(dim: int) -> int:
    """Worker cycles to invert one triangle."""
    return 28 + 63 * dim + 17 * _pairs(dim) + 6 * _triples(dim)


def substitution_cycles(dim: int) -> int:
    """Worker cycles to solve one triangle for one column."""
    return 34 + 4 * dim + 6 * _pairs(dim) + 25 * dim + 7


def triangle_flops(dim: int) -> int:
    """Products and sums of a decomposition or an inversion."""
    return 2 * _triples(dim) + 2 * _pairs(dim) + dim
