"""The ids of a system's devices: single chips first, then groups of 2, 4, 8, ...

In: a `System`. Out: its `Device`s by id. N chips (a power of two) have 2N - 1 ids, and
the groups of g chips begin at 2N - 2N/g.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from popple.target import System


@dataclass(frozen=True)
class Device:
    """What a program attaches to: a chip or a group of chips under one id."""

    id: int
    chip_ids: tuple[int, ...]

    @property
    def num_chips(self) -> int:
        """Chips in the group."""
        return len(self.chip_ids)


def number_devices(system: System) -> tuple[Device, ...]:
    """All devices of a system, by id.

    With four chips, 0 to 3 are the chips, 4 and 5 the pairs and 6 is all of them.
    """
    order = system.device_order or tuple(range(system.num_chips))
    singles = [(chip_id,) for chip_id in range(system.num_chips)]
    groups = [*singles, *_group(order)]
    return tuple(Device(i, chip_ids) for i, chip_ids in enumerate(groups))


def _group(order: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Whole runs of 2, 4, 8, ... chips, and last all chips together."""
    size = 2
    while size < len(order):
        for start in range(0, len(order) - size + 1, size):
            yield order[start : start + size]
        size *= 2
    if len(order) > 1:
        yield order
