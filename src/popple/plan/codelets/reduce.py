"""Reduction codelets: cycles to reduce what lies on one tile.

Source: PopLibs popops/reduction cycle estimation functions. All are shared by the
workers of a tile after a supervisor prologue of 33 cycles.
"""

from __future__ import annotations

from popple.graph import DType
from popple.plan.codelets.rates import num_lanes
from popple.units import ceil_div

SUPERVISOR_CYCLES = 33


def scalar_reduce_cycles(
    num_elements: int, dtype: DType, step_cycles: int, num_workers: int
) -> int:
    """All elements of the tile to one: every worker a part, one worker the parts."""
    words = ceil_div(ceil_div(num_elements, num_workers), num_lanes(dtype))
    parts = ceil_div(num_workers, num_lanes(dtype))
    worker = (22 + step_cycles * words) + (22 + step_cycles * parts)
    return SUPERVISOR_CYCLES + num_workers * worker


def continuous_reduce_cycles(
    num_outputs: int,
    num_partials: int,
    dtype: DType,
    step_cycles: int,
    num_workers: int,
) -> int:
    """Each output from `num_partials` neighbours: 17 + outputs (12 + words)."""
    words = ceil_div(num_partials, num_lanes(dtype))
    outputs = ceil_div(num_outputs, num_workers)
    worker = 17 + outputs * (12 + step_cycles * words)
    return SUPERVISOR_CYCLES + num_workers * worker


def strided_reduce_cycles(
    num_outputs: int,
    num_partials: int,
    dtype: DType,
    step_cycles: int,
    num_workers: int,
) -> int:
    """Rows of outputs on top of each other: 16 + words (3 + 3 + 3 + partials - 1)."""
    words = ceil_div(ceil_div(num_outputs, num_lanes(dtype)), num_workers)
    worker = 16 + words * (9 + step_cycles * max(0, num_partials - 1))
    return SUPERVISOR_CYCLES + num_workers * worker


def tile_reduce_cycles(
    num_elements: int,
    num_outputs: int,
    is_continuous: bool,
    dtype: DType,
    step_cycles: int,
    num_workers: int,
) -> int:
    """`num_elements` of a tile to `num_outputs`, by the codelet that fits."""
    if num_elements == 0:
        return 0
    if num_outputs <= 1:
        return scalar_reduce_cycles(num_elements, dtype, step_cycles, num_workers)
    partials = ceil_div(num_elements, num_outputs)
    formula = continuous_reduce_cycles if is_continuous else strided_reduce_cycles
    return formula(num_outputs, partials, dtype, step_cycles, num_workers)
