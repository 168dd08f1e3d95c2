"""A virtual pod: its devices, numbered as on the real machine, and leases on them.

In: a `System`. Out: `Device`s with ids, single chips first and then groups of them, and
`Lease`s that no other process can hold at the same time. A lease ends when it is
released, when its `with` block ends, or when the process ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from filelock import BaseFileLock

from popple.device.registry import Holder, Registry, get_default_directory
from popple.errors import DeviceBusyError, DeviceError
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


class Lease:
    """The sole use of a device, until it is released once.

    A forked process does not share it: the lease stays with the process that took it,
    and ends with that process even if a child lives on.
    """

    def __init__(self, device: Device, locks: Sequence[BaseFileLock]) -> None:
        self.device = device
        # A lock that nobody refers to any more is released, so a forgotten lease is.
        self._locks = tuple(locks)

    @property
    def is_held(self) -> bool:
        """Whether the device is still ours; in a forked process it is not."""
        return all(lock.is_locked for lock in self._locks)

    def release(self) -> None:
        """Let others use the device."""
        if not self.is_held:
            raise DeviceError(
                f"The lease of device {self.device.id} was already released.",
                remedy="Release it once, or use it in a 'with' block only.",
            )
        for lock in self._locks:
            lock.release()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.is_held:
            # The program may have released it inside the block.
            self.release()


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
