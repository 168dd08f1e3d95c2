"""A device in use by this process.

In: a device and the locked files of its chips. Out: a `Lease`, which gives them back
when it is released, when its `with` block ends, or when the process ends.
"""

from __future__ import annotations

import os
import sys
import weakref
from types import TracebackType

from popple.device.devices import Device
from popple.device.locks import unlock
from popple.errors import DeviceError


class Lease:
    """The sole use of a device, until it is released once.

    A forked process does not share it: the lease stays with the process that took it,
    and ends with that process even if a child lives on.
    """

    def __init__(self, device: Device, descriptors: tuple[int, ...]) -> None:
        self.device = device
        self._give_back = weakref.finalize(self, _give_back, descriptors, os.getpid())
        if sys.platform != "win32":
            os.register_at_fork(after_in_child=self._give_back)

    @property
    def is_held(self) -> bool:
        """Whether the device is still ours."""
        return self._give_back.alive

    def release(self) -> None:
        """Let others use the device."""
        if not self.is_held:
            raise DeviceError(
                f"The lease of device {self.device.id} was already released.",
                remedy="Release it once, or use it in a 'with' block only.",
            )
        self._give_back()

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


def _give_back(descriptors: tuple[int, ...], owner_pid: int) -> None:
    """Unlock and close; in a forked child only close, or the owner would lose it."""
    for descriptor in descriptors:
        if os.getpid() == owner_pid:
            unlock(descriptor)
        os.close(descriptor)
