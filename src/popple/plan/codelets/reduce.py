"""Reduction codelets: cycles of one worker that reduces its part of a tile's data.

Source: PopLibs popops/reduction/CycleEstimationFunctions.cpp. `step_cycles` are those
of one 64-bit word in the inner loop.
"""

from __future__ import annotations

from popple.graph import DType
from popple.plan.codelets.rates import num_lanes
from popple.units import ceil_div

# Cycles after the inner loop of a strided reduction: leave it, store the result.
_STORE_CYCLES = {4: 5, 2: 8}


def continuous_reduce_cycles(
    num_outputs: int, num_partials: int, dtype: DType, step_cycles: int
) -> int:
    """Each output from `num_partials` neighbours: 17 + outputs (12 + words)."""
    words = ceil_div(num_partials, num_lanes(dtype))
    return 17 + num_outputs * (12 + step_cycles * words)


def strided_reduce_cycles(
    num_outputs: int, num_partials: int, dtype: DType, step_cycles: int
) -> int:
    """Rows of outputs on top of each other, one word of every row after the other."""
    words = ceil_div(num_outputs, num_lanes(dtype))
    store = _STORE_CYCLES.get(dtype.num_bytes, 5)
    return 16 + words * (6 + store + step_cycles * max(0, num_partials - 1))
