"""Devices and their manager, under Poplar's names, over Popple's virtual machines."""

from __future__ import annotations

from collections.abc import Mapping

from poplar._target import Target, TargetType
from popple.device import Device as PoppleDevice
from popple.device import Lease, Machine, Pod, find_machine
from popple.device.attributes import describe
from popple.errors import DeviceBusyError


class Device:
    """A device of a machine; attached, it is this program's alone."""

    def __init__(self, machine: Machine, device: PoppleDevice) -> None:
        self._machine = machine
        self._device = device
        self._lease: Lease | None = None

    def getId(self) -> int:
        """The id, as gc-info lists it."""
        return self._device.id

    def getTarget(self) -> Target:
        """The constants of its IPUs."""
        return Target(self._machine.system, self._device.num_chips)

    def getNumIPUs(self) -> int:
        """IPUs of the device."""
        return self._device.num_chips

    def attach(self) -> bool:
        """Take the device; False if it is in use."""
        if self.isAttached():
            return True
        try:
            self._lease = Pod(self._machine).acquire(id=self._device.id)
        except DeviceBusyError:
            return False
        return True

    def detach(self) -> None:
        """Let others use the device."""
        if self._lease is not None and self._lease.is_held:
            self._lease.release()
        self._lease = None

    def isAttached(self) -> bool:
        """Whether the device is this program's."""
        return self._lease is not None and self._lease.is_held

    def getDriverIDs(self) -> list[int]:
        """The ids of its IPUs."""
        return list(self._device.chip_ids)

    def getAttributes(self) -> Mapping[str, str]:
        """All attributes, as gc-info shows them."""
        # What is attached may be on a copy of an elastic machine.
        machine = self._lease.machine if self._lease else self._machine
        return describe(machine, self._device)

    def getAttribute(self, attribute: str) -> str:
        """One attribute."""
        found = self.getAttributes()
        if attribute not in found:
            known = ", ".join(found)
            raise KeyError(
                f"Device {self.getId()} has no {attribute!r}. Known: {known}"
            )
        return found[attribute]

    def supportsRemoteBuffers(self) -> bool:
        """Whether data can be kept off the IPU: in streaming memory, or the host's."""
        return True

    def hasGateway(self) -> bool:
        """Whether a gateway stands between IPU and host."""
        return bool(self._machine.system.gateway_bytes_per_second)

    def __repr__(self) -> str:
        return f"<Device {self.getId()} of {self._machine.name}>"


class DeviceManager:
    """The devices of the machine that programs attach to now."""

    def __init__(self) -> None:
        self._machine = find_machine()

    @staticmethod
    def createDeviceManager() -> DeviceManager:
        """A manager."""
        return DeviceManager()

    def getDevices(
        self, type: TargetType = TargetType.IPU, requiredNumIPUs: int = 0
    ) -> list[Device]:
        """The devices of a type; with a number of IPUs, those that have as many."""
        if type is not TargetType.IPU:
            return []
        pod = Pod(self._machine)
        devices = pod.find(requiredNumIPUs) if requiredNumIPUs else pod.devices
        return [Device(self._machine, device) for device in devices]

    def getDevice(self, type: TargetType | int, deviceId: int | None = None) -> Device:
        """The device of an id; its type may stand before it."""
        wanted = type if deviceId is None else deviceId
        if isinstance(wanted, TargetType):
            raise TypeError("getDevice needs the id of a device.")
        return Device(self._machine, Pod(self._machine).device(wanted))
