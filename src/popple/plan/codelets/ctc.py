"""Codelets of connectionist temporal classification: one step in time by one worker.

Source: PopLibs popnn/PerformanceEstimation.hpp (alphaCycles, gradGivenAlphaCycles):
for a symbol and the blank beside it, two sums of logarithms and two products.
"""

from __future__ import annotations

from popple.graph import DType
from popple.plan.codelets.rates import type_name
from popple.program import Codelet, Thread

LOG_ADD_CYCLES = 16
"""min, max, subtract, exp, add 1, log, add."""
LOG_MUL_CYCLES = 1
LOG_ADD_PAIR_CYCLES = 23
"""Sum of two pairs of floats in a reduction, which has them one after the other
through exp and log (popops CycleEstimationFunctions.cpp)."""

_PATHS_CYCLES = 2 * (LOG_ADD_CYCLES + LOG_MUL_CYCLES)
_ALPHA_MEMORY_CYCLES, _ALPHA_BRANCH_CYCLES = 2 * (1 + 3), 2
_GRADIENT_MEMORY_CYCLES = 2 * (2 + 1)


def ctc_codelet(name: str, dtype: DType) -> Codelet:
    """`popnn::CTCAlpha<float>`; the size of its code is estimated."""
    full_name = f"popnn::{name}<{type_name(dtype)}>"
    return Codelet(full_name, Thread.WORKER, 600, 52)


def alpha_cycles(num_symbols: int, has_last_blank: bool) -> int:
    """Worker cycles of one step of alpha or beta over symbols and their blanks."""
    each = _ALPHA_MEMORY_CYCLES + _ALPHA_BRANCH_CYCLES + _PATHS_CYCLES
    return each * num_symbols + has_last_blank * (LOG_ADD_CYCLES + LOG_MUL_CYCLES)


def gradient_cycles(num_symbols: int, has_last_blank: bool) -> int:
    """The same, with the gradient of every symbol and blank."""
    each = _GRADIENT_MEMORY_CYCLES + _PATHS_CYCLES
    last = has_last_blank * (LOG_ADD_CYCLES + LOG_MUL_CYCLES)
    return alpha_cycles(num_symbols, has_last_blank) + each * num_symbols + last
