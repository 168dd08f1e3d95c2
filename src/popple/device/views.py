"""What monitoring tools look at: machines, with who holds their chips at one moment.

In: whether all partitions are wanted or only the active one. Out: a `View` of each
machine. Nothing is disturbed by looking: locks are tried and let go at once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from popple.device.attributes import describe, partition_of
from popple.device.machine import Machine
from popple.device.machines import list_machines
from popple.device.numbering import Device
from popple.device.partitions import list_partitions
from popple.device.pod import Pod
from popple.device.registry import Holder


@dataclass(frozen=True)
class View:
    """A machine, who holds what of it, and when that was so."""

    machine: Machine
    holders: tuple[Holder, ...]
    now: float
    is_active: bool = True

    @property
    def name(self) -> str:
        """The partition's name, or the machine's."""
        return partition_of(self.machine)

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices by id, single chips first."""
        return Pod(self.machine).devices

    def describe(self, device: Device) -> dict[str, str]:
        """The attributes of a device at this moment."""
        return describe(self.machine, device, self.holders, self.now)

    def describe_chips(self) -> list[dict[str, str]]:
        """The attributes of every single chip."""
        return [self.describe(d) for d in self.devices if d.num_chips == 1]


def look(*, at_all: bool = False) -> tuple[View, ...]:
    """The active machine, with its copies in use; or all machines and partitions.

    A program that found the default machine full runs on a copy of it, and is to be
    seen without asking for other partitions.
    """
    first, *others = list_machines()
    active = [first]
    if first.is_elastic:
        home = first.directory.parent
        active += [other for other in others if other.directory.parent == home]
    shown = {partition_of(machine): machine for machine in active}
    if at_all:
        for machine in (*others, *(p.machine for p in list_partitions())):
            shown.setdefault(partition_of(machine), machine)
    return tuple(_view(machine, machine in active) for machine in shown.values())


def _view(machine: Machine, is_active: bool) -> View:
    return View(machine, Pod(machine).holders(), time.time(), is_active)
