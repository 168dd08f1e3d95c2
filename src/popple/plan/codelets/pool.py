"""Pooling codelets. Source: PopLibs popnn/PerformanceEstimation.hpp.

Workers share the positions of the result evenly, whole rows or parts of them. A worker
goes over each of its rows once for every work item, a position of the window; for each
group of channels and each vector of it the inner loop runs along the row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from popple.plan.conv.vertices import Ints, ceil_of

SUPERVISOR_CYCLES = 13
WORKER_CYCLES = 42
"""Loads and unpacks the vertex state, divides the clearing of the result."""
MORE_POINTERS_CYCLES = 10
"""Loads and unpacks the forward values that a gradient of a maximum reads as well."""


@dataclass(frozen=True)
class PoolVertex:
    """One pooling vertex: its kind, window positions, vectors of channels by group.

    `step` is the distance of positions that a window position reaches: the stride,
    in a gradient. `cleared` vectors are cleared for each position and group first.
    """

    is_max: bool
    is_grad: bool
    num_items: int
    vectors: int
    cleared: int
    step: int = 1

    @property
    def reads_forward(self) -> bool:
        """Whether it compares the values of the forward pass."""
        return self.is_max and self.is_grad

    @property
    def loop_cycles(self) -> tuple[int, int]:
        """Worker cycles of the first turn of the inner loop and of every other."""
        if self.reads_forward:
            return 7, 5
        return (4, 3) if self.is_max else (5, 3)

    def cycles(
        self, rows: Ints, columns: Ints, num_groups: Ints, num_workers: int
    ) -> Ints:
        """Cycles of a tile with `rows` rows of `columns` positions of groups."""
        worker = WORKER_CYCLES + MORE_POINTERS_CYCLES * self.reads_forward
        cleared = rows * columns * self.cleared // num_workers
        longest = np.zeros_like(rows)
        # Shares differ by where rows end, so each worker is timed: the longest decides.
        for index in range(num_workers):
            share = self._share_cycles(rows, columns, num_groups, index, num_workers)
            longest = np.maximum(longest, share)
        total = worker + num_groups * (4 + cleared) + longest
        return SUPERVISOR_CYCLES + num_workers * total

    def _share_cycles(
        self, rows: Ints, columns: Ints, groups: Ints, index: int, num_workers: int
    ) -> Ints:
        """Worker cycles for one worker's share of all positions."""
        size = rows * columns
        begin, end = index * size // num_workers, (index + 1) * size // num_workers
        first, last = begin // columns, np.maximum(end - 1, begin) // columns
        pieces = np.where(end > begin, last - first + 1, 0)
        head = np.minimum(end, (first + 1) * columns) - begin
        runs = ceil_of(head, self.step)
        tail = ceil_of(end - last * columns, self.step)
        whole = ceil_of(columns, self.step)
        runs = runs + np.where(pieces > 1, tail + (pieces - 2) * whole, 0)
        start, slope = self.loop_cycles
        group = 2 + self.vectors * (3 + start)
        item = 23 + groups * group + (groups - 1) * (6 if self.is_grad else 4)
        turns = self.num_items * groups * self.vectors * (runs - pieces)
        return pieces * (15 + self.num_items * item) + slope * turns
