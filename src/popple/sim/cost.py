"""Cost: cycles by phase, and the work done in them, as a value with `+` and `*`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from operator import attrgetter

from popple.quick import quick


@quick
@dataclass(frozen=True, slots=True)
class Cost:
    """What a part of a program takes: elapsed cycles by phase, work by kind.

    `cycles` is the time that passes. Parts that run one after the other add up (`+`),
    parts that run side by side take the time of the longest (`beside`); the work of
    all of them is done in either case.
    """

    compute_cycles: int = 0
    exchange_cycles: int = 0
    sync_cycles: int = 0
    link_cycles: int = 0
    host_cycles: int = 0
    flops: int = 0
    exchange_bytes: int = 0
    link_bytes: int = 0
    host_bytes: int = 0

    @property
    def cycles(self) -> int:
        """All phases together."""
        return (
            self.compute_cycles
            + self.exchange_cycles
            + self.sync_cycles
            + self.link_cycles
            + self.host_cycles
        )

    def __add__(self, other: Cost) -> Cost:
        # Written out field by field, here and below: costs are added for every step of
        # a program, and a loop over the fields of a dataclass is slow.
        return Cost(
            self.compute_cycles + other.compute_cycles,
            self.exchange_cycles + other.exchange_cycles,
            self.sync_cycles + other.sync_cycles,
            self.link_cycles + other.link_cycles,
            self.host_cycles + other.host_cycles,
            self.flops + other.flops,
            self.exchange_bytes + other.exchange_bytes,
            self.link_bytes + other.link_bytes,
            self.host_bytes + other.host_bytes,
        )

    def __mul__(self, count: int) -> Cost:
        return Cost(
            self.compute_cycles * count,
            self.exchange_cycles * count,
            self.sync_cycles * count,
            self.link_cycles * count,
            self.host_cycles * count,
            self.flops * count,
            self.exchange_bytes * count,
            self.link_bytes * count,
            self.host_bytes * count,
        )

    def beside(self, other: Cost) -> Cost:
        """Both at the same time: the cycles of the longer, the work of both."""
        # Phases of two parts side by side overlap in unknown ways. Those of the longer
        # part are kept whole, so that the phases still add up to the time that passes.
        longer = other if other.cycles > self.cycles else self
        return Cost(
            longer.compute_cycles,
            longer.exchange_cycles,
            longer.sync_cycles,
            longer.link_cycles,
            longer.host_cycles,
            self.flops + other.flops,
            self.exchange_bytes + other.exchange_bytes,
            self.link_bytes + other.link_bytes,
            self.host_bytes + other.host_bytes,
        )


ZERO = Cost()


_FIELDS = attrgetter(*(each.name for each in fields(Cost)))


def total_cost(costs: Iterable[Cost]) -> Cost:
    """Costs of parts that run one after the other."""
    # Field by field: a cost for every sum on the way would be thrown away.
    return Cost(*map(sum, zip(*map(_FIELDS, costs), strict=True)))
