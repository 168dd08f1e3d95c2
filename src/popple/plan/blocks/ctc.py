"""Which tiles share a connectionist temporal classification: a small search.

Batch, time and labels are split over tiles (PopLibs popnn/CTCLossPlan.cpp). The first
half of the time partitions goes forward (alpha) while the other goes backward (beta);
then each goes on over the other's half with gradients. In: a `CtcProblem` and a chip.
Out: the `CtcSplit` with the fewest estimated cycles, then bytes, then tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from popple.plan.codelets.ctc import alpha_cycles, gradient_cycles
from popple.target import Chip
from popple.units import ceil_div

EXCHANGE_CYCLES = 100
"""What the library's planner takes for one exchange beside its payload."""
SYNC_CYCLES = 90
"""What the library's planner takes for one sync."""
LABEL_BYTES = 2
PARTIAL_BYTES = 4


@dataclass(frozen=True)
class CtcProblem:
    """Sizes that decide the split."""

    time: int
    batch: int
    num_classes: int
    num_labels: int
    element_bytes: int


@dataclass(frozen=True)
class CtcSplit:
    """Partitions of batch, time and labels; the last blank may have its own tiles."""

    problem: CtcProblem
    batch: int
    time: int
    labels: int
    is_blank_apart: bool

    @property
    def label_tiles(self) -> int:
        """Tiles that share the labels."""
        return self.labels + self.is_blank_apart

    @property
    def num_tiles(self) -> int:
        """All tiles at work."""
        return self.batch * self.time * self.label_tiles

    @property
    def rows(self) -> int:
        """Samples on a tile: one worker each."""
        return ceil_div(self.problem.batch, self.batch)

    @property
    def steps(self) -> int:
        """Points in time of one partition."""
        return ceil_div(self.problem.time, self.time)

    @property
    def symbols(self) -> int:
        """Labels of one partition."""
        return ceil_div(self.problem.num_labels, self.labels)

    @property
    def num_loops(self) -> int:
        """Steps until the two directions meet, and as many until they end."""
        return self.steps * ceil_div(self.time, 2)

    @property
    def has_last_blank(self) -> bool:
        """Whether a full partition has the blank at the end as well."""
        is_even = self.symbols * self.labels == self.problem.num_labels
        return is_even and not self.is_blank_apart

    @property
    def extended(self) -> int:
        """Symbols and blanks of one partition."""
        return 2 * self.symbols + self.has_last_blank

    @property
    def table_elements(self) -> int:
        """Chances, or gradients, of one tile."""
        return self.rows * self.steps * self.problem.num_classes

    @property
    def neighbour_elements(self) -> int:
        """What a step takes from other partitions of labels."""
        crosses = (self.labels > 1) + (self.labels > 1 and self.time > 2)
        return 2 * crosses

    @property
    def column_elements(self) -> int:
        """What a step takes from the partition before it in time."""
        return self.symbols if self.time > 2 else 0

    def estimate(self, num_workers: int, exchange_bytes_per_cycle: int) -> int:
        """Cycles of both loops, as the library's planner counts them."""
        blank = self.has_last_blank
        work = alpha_cycles(self.symbols, blank) + gradient_cycles(self.symbols, blank)
        moved = self.column_elements + self.neighbour_elements
        moved += 2 + 4 * self.symbols
        exchange = 2 * EXCHANGE_CYCLES
        exchange += moved * PARTIAL_BYTES // exchange_bytes_per_cycle
        # Worker cycles are tile cycles over the number of workers; there are two loops.
        each = work * num_workers + exchange + 2 * SYNC_CYCLES
        return each * self.num_loops * ceil_div(self.rows, num_workers)

    def temporary_bytes(self) -> int:
        """Bytes of a full tile, as the library's planner counts them."""
        tables = self.table_elements * (self.problem.element_bytes + PARTIAL_BYTES)
        is_even = self.symbols * self.labels == self.problem.num_labels
        columns = 4 * (2 * self.symbols + is_even) * PARTIAL_BYTES
        return tables + self.rows * (self.symbols * LABEL_BYTES + columns)


@cache
def find_split(problem: CtcProblem, chip: Chip, memory_proportion: float) -> CtcSplit:
    """The best split; the bound of memory is doubled until there is one."""
    candidates = list(_candidates(problem, chip.num_tiles))
    limit = memory_proportion * chip.tile_memory_bytes
    # A problem that does not fit is still planned, for the report to say so.
    while min(c.temporary_bytes() for c in candidates) > limit:
        limit *= 2
    fitting = (c for c in candidates if c.temporary_bytes() <= limit)
    rate = chip.exchange_bytes_per_cycle

    def rank(split: CtcSplit) -> tuple[int, int, int]:
        cycles = split.estimate(chip.num_workers, rate)
        return cycles, split.temporary_bytes(), split.num_tiles

    return min(fitting, key=rank)


def _candidates(problem: CtcProblem, num_tiles: int) -> Iterator[CtcSplit]:
    for batch in _partitions(problem.batch):
        for time in _partitions(problem.time):
            for labels in _partitions(problem.num_labels):
                # Partitions of labels come in increasing order.
                if batch * time * labels > num_tiles:
                    break
                for is_apart in (False, True):
                    split = CtcSplit(problem, batch, time, labels, is_apart)
                    if split.num_tiles <= num_tiles:
                        yield split


def _partitions(size: int) -> list[int]:
    """Numbers of parts of which none is empty."""
    return sorted({ceil_div(size, part) for part in range(1, size + 1)}) or [1]
