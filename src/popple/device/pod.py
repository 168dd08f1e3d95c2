"""Pod: the devices of a machine, to look at, to choose from and to hold.

In: a `Machine`, or a `System` and a directory for its locks. Out: `Device`s with ids,
and `Lease`s that no other process can hold at the same time.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from popple.device.environment import read_environment
from popple.device.lease import Lease, own_leases
from popple.device.machine import Machine, describe_machine, named_directory
from popple.device.numbering import Device, number_devices
from popple.device.registry import Holder, Registry, describe_process
from popple.device.state import find_roots, saying_where
from popple.errors import DeviceBusyError, DeviceError
from popple.target import System


class Pod:
    """The devices of a machine and the lock files that stand for them.

    Pods of the same directory share their devices, in one process or in several.
    """

    def __init__(
        self, machine: Machine | System, directory: Path | None = None
    ) -> None:
        if isinstance(machine, System):
            machine = _machine_of(machine, directory)
        self.machine = machine
        self.system = machine.system
        self.devices = number_devices(machine.system)

    def __repr__(self) -> str:
        return f"Pod({self.machine.name!r}, {self.system.num_chips} IPUs)"

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

    def acquire(
        self,
        num_chips: int | None = None,
        id: int | None = None,
        *,
        instead_of: Lease | None = None,
    ) -> Lease:
        """The first free device of `num_chips` chips, or the device `id`, as ours.

        `instead_of` is a lease to give up for it: nobody else gets its chips between.
        It is given up even if there is nothing to be had, so that two programs that
        grow at the same time do not wait for each other.
        """
        candidates = self._choose(num_chips, id)
        for machine in self._list_places(instead_of):
            registry = _registry_of(machine)
            self._prepare(machine)
            with registry.guard():
                _give_up(instead_of)
                for device in self._without_own(candidates):
                    lease = _try_lease(machine, registry, device)
                    if lease is not None:
                        return lease
                if not self.machine.is_elastic:
                    raise self._make_busy_error(registry, candidates)
        raise AssertionError("an elastic machine has no last copy")

    def holders(self) -> tuple[Holder, ...]:
        """Who holds what, by chip; of an elastic machine, on this copy of it."""
        self._prepare(self.machine)
        registry = _registry_of(self.machine)
        with registry.guard():
            return self._read_holders(registry, range(self.system.num_chips))

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

    def _without_own(self, candidates: tuple[Device, ...]) -> tuple[Device, ...]:
        """What of an elastic machine this process does not hold itself.

        To a program, all copies are one machine: a chip that it holds on one of them is
        not free on another, so that one that forgets to release notices, as on IPUs.
        """
        if not self.machine.is_elastic:
            return candidates
        leases = own_leases(self.machine)
        own = {chip for lease in leases for chip in lease.device.chip_ids}
        free = tuple(d for d in candidates if own.isdisjoint(d.chip_ids))
        if not free:
            us = f"process {os.getpid()} ({describe_process()})"
            raise self._busy(candidates, us)
        return free

    def _list_places(self, instead_of: Lease | None) -> Iterator[Machine]:
        """The machine; or the copies of an elastic one, those we are on first."""
        if not self.machine.is_elastic:
            yield self.machine
            return
        leases = own_leases(self.machine)
        first = [instead_of] if instead_of in leases else leases
        known = list(dict.fromkeys(lease.machine.copy for lease in first if lease))
        others = (copy for copy in itertools.count() if copy not in known)
        for copy in itertools.chain(known, others):
            yield self.machine.at_copy(copy)

    def _prepare(self, machine: Machine) -> None:
        with saying_where(machine.directory):
            describe_machine(machine, find_roots(read_environment()))

    def _make_busy_error(
        self, registry: Registry, candidates: Sequence[Device]
    ) -> DeviceBusyError:
        """Say who holds the chips of the candidates; the guard is ours."""
        chip_ids = sorted({c for device in candidates for c in device.chip_ids})
        holders = self._read_holders(registry, chip_ids)
        return self._busy(candidates, _render(holders))

    def _busy(self, candidates: Sequence[Device], holders: str) -> DeviceBusyError:
        names = ", ".join(str(device.id) for device in candidates)
        return DeviceBusyError(
            f"Device {names} of {self.system.name} is held by {holders}.",
            remedy="Wait until it ends, or choose another device.",
        )

    def _read_holders(
        self, registry: Registry, chip_ids: Iterable[int]
    ) -> tuple[Holder, ...]:
        """Holders by the ids that programs see, which differ on a partition."""
        physical = {self.machine.chips[chip_id]: chip_id for chip_id in chip_ids}
        found = registry.read_holders(physical)
        return tuple(replace(h, chip_id=physical[h.chip_id]) for h in found)


def _machine_of(system: System, directory: Path | None) -> Machine:
    place = directory or named_directory(system, find_roots(read_environment()))
    chips = tuple(range(system.num_chips))
    return Machine(system.name, system, system.name, place, chips)


def _registry_of(machine: Machine) -> Registry:
    return Registry(
        machine.directory, is_shared=machine.is_shared, is_pod=machine.is_pod
    )


def _give_up(lease: Lease | None) -> None:
    if lease is not None and lease.is_held:
        lease.release()


def _try_lease(machine: Machine, registry: Registry, device: Device) -> Lease | None:
    """A lease on a device of a machine; None if one of its chips is held."""
    physical = [machine.chips[chip_id] for chip_id in device.chip_ids]
    locks = registry.try_take(physical)
    if locks is None:
        return None
    try:
        meter = registry.open_meter(physical, machine.system.chip.thermal_seconds)
    except DeviceError:
        # An error keeps what its frames refer to, and the chips would stay locked.
        for lock in locks:
            lock.release()
        raise
    return Lease(device, locks, machine, meter)


def _render(holders: Iterable[Holder]) -> str:
    # A lease may end while another process looks, so there may be no holder left.
    commands = {holder.pid: holder.command for holder in holders}
    shown = [f"process {pid} ({command})" for pid, command in commands.items()]
    return ", ".join(shown) or "a process that has just released it"
