"""Lease: the sole use of a device, and the leases that this process has.

In: the locks of a device's chips. Out: a `Lease`, which ends when it is released, when
its `with` block ends, or when the process ends.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from filelock import BaseFileLock

from popple.device.activity import ActivityMeter
from popple.device.machine import Machine
from popple.device.numbering import Device
from popple.errors import DeviceError


class Lease:
    """The sole use of a device, until it is released once.

    A forked process does not share it: the lease stays with the process that took it,
    and ends with that process even if a child lives on. `machine` is the one that the
    chips are of: of an elastic machine, the copy. `activity` counts runs of programs.
    """

    def __init__(
        self,
        device: Device,
        locks: Sequence[BaseFileLock],
        machine: Machine,
        activity: ActivityMeter,
    ) -> None:
        self.device = device
        self.machine = machine
        self.activity = activity
        # A lock that nobody refers to any more is released, so a forgotten lease is.
        self._locks = tuple(locks)
        _OWN.add(self)

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
        self.activity.close()
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


class _OwnLeases:
    """The leases of this process; one that nobody refers to any more is forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leases: weakref.WeakSet[Lease] = weakref.WeakSet()

    def add(self, lease: Lease) -> None:
        with self._lock:
            self._leases.add(lease)

    def held_on(self, copies: Path) -> list[Lease]:
        with self._lock:
            known = list(self._leases)
        return [lease for lease in known if _is_on(lease, copies) and lease.is_held]


def _is_on(lease: Lease, copies: Path) -> bool:
    return lease.machine.directory.parent == copies


_OWN = _OwnLeases()


def own_leases(machine: Machine) -> list[Lease]:
    """What this process holds on an elastic machine, on any of its copies."""
    return _OWN.held_on(machine.directory.parent)
