"""Pooling codelets. Source: PopLibs popnn performance estimation.

A worker goes over its rows once for every work item, a position of the window; for each
group of channels and each vector of it the inner loop runs along the row.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from popple.plan.conv.vertices import Ints, ceil_of

SUPERVISOR_CYCLES = 13
WORKER_CYCLES = 40
"""Loads and unpacks the vertex state, divides the clearing of the result."""
# Worker cycles before and in each turn of the inner loop.
_MAX_LOOP = (4, 3)
_SUM_LOOP = (5, 3)
_MAX_GRAD_LOOP = (7, 5)


def pool_cycles(
    rows: Ints,
    columns: Ints,
    num_groups: Ints,
    *,
    num_items: int,
    vectors: int,
    is_max: bool,
    is_grad: bool,
    num_workers: int,
) -> Ints:
    """Cycles of a tile with `rows` rows of `columns` positions of channel groups."""
    loop = _MAX_LOOP if is_max else _SUM_LOOP
    start, slope = _MAX_GRAD_LOOP if is_max and is_grad else loop
    costs: list[Ints] = []
    # Rows are dealt to the workers, cut along x where there are few.
    for cuts in (1, 2, 3, 6):
        run = ceil_of(columns, cuts)
        group = 6 + vectors * (3 + start + slope * (run - 1))
        row = 15 + num_items * (23 + num_groups * group)
        costs.append(ceil_of(rows * cuts, num_workers) * row)
    cleared = ceil_of(rows * columns * vectors, num_workers)
    worker = WORKER_CYCLES + num_groups * (4 + cleared) + reduce(np.minimum, costs)
    return SUPERVISOR_CYCLES + num_workers * worker
