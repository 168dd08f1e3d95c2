"""The devices of one system, shared by all processes of a user.

In: a `System`, and what a program asks for. Out: a `Device` by id or size, a `Lease`
on one that is free, or who holds what.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from popple.device.devices import Device, number_devices
from popple.device.lease import Lease
from popple.device.registry import Holder, Registry, get_default_directory
from popple.errors import DeviceBusyError, DeviceError
from popple.target import System


class Pod:
    """The devices of a system and the lock files that stand for them.

    Pods of the same directory share their devices, in one process or in several.
    """

    def __init__(self, system: System, directory: Path | None = None) -> None:
        self.system = system
        self.devices = number_devices(system)
        self._registry = Registry(directory or get_default_directory(system.name))

    def device(self, id: int) -> Device:
        """The device of that id."""
        if not 0 <= id < len(self.devices):
            raise DeviceError(
                f"There is no device {id}: the ids of {self.system.name} are "
                f"0 to {len(self.devices) - 1}.",
                remedy="Choose one of them, or a larger system.",
            )
        return self.devices[id]

    def find(self, num_chips: int) -> tuple[Device, ...]:
        """The devices of exactly that many chips, lowest id first; maybe none."""
        return tuple(d for d in self.devices if d.num_chips == num_chips)

    def candidates(self, num_chips: int) -> tuple[Device, ...]:
        """As `find`, but there is at least one."""
        candidates = self.find(num_chips)
        if not candidates:
            sizes = sorted({device.num_chips for device in self.devices})
            raise DeviceError(
                f"No device of {self.system.name} has {num_chips} chips.",
                remedy=f"Ask for one of: {', '.join(map(str, sizes))}.",
            )
        return candidates

    def acquire(self, num_chips: int | None = None, id: int | None = None) -> Lease:
        """The first free device of `num_chips` chips, or the device `id`, as ours."""
        candidates = self._choose(num_chips, id)
        with self._registry.guard():
            for device in candidates:
                locks = self._registry.try_take(device.chip_ids)
                if locks is not None:
                    return Lease(device, locks)
            raise self._make_busy_error(candidates)

    def holders(self) -> tuple[Holder, ...]:
        """Who holds what, by chip."""
        with self._registry.guard():
            return self._registry.read_holders(range(self.system.num_chips))

    def _choose(self, num_chips: int | None, id: int | None) -> tuple[Device, ...]:
        if id is None:
            return self.candidates(1 if num_chips is None else num_chips)
        device = self.device(id)
        if num_chips not in (None, device.num_chips):
            raise DeviceError(
                f"Device {id} of {self.system.name} has {device.num_chips} chips, "
                f"not {num_chips}.",
                remedy="Ask for an id or for a number of chips, not for both.",
            )
        return (device,)

    def _make_busy_error(self, candidates: Sequence[Device]) -> DeviceBusyError:
        """Say who holds the chips of the candidates; the guard is ours."""
        chip_ids = sorted({c for device in candidates for c in device.chip_ids})
        holders = self._registry.read_holders(chip_ids)
        names = ", ".join(str(device.id) for device in candidates)
        return DeviceBusyError(
            f"Device {names} of {self.system.name} is held by {_render(holders)}.",
            remedy="Wait until it ends, or choose another device.",
        )


def _render(holders: Iterable[Holder]) -> str:
    # A lease may end while another process looks, so there may be no holder left.
    commands = {holder.pid: holder.command for holder in holders}
    shown = [f"process {pid} ({command})" for pid, command in commands.items()]
    return ", ".join(shown) or "a process that has just released it"
