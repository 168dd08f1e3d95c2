"""A device in use by this process.

In: a device and the locks of its chips. Out: a `Lease`, which gives them back when it
is released, when its `with` block ends, or when the process ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from filelock import BaseFileLock

from popple.device.devices import Device
from popple.errors import DeviceError


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
            self.release()
