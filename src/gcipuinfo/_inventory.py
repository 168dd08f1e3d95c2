"""The class `gcipuinfo`: attributes, event records and health of devices.

In: queries by attribute and device. Out: text, as the documented library gives it: a
missing attribute is "N/A", JSON is one text.
"""

from __future__ import annotations

import enum
import json
import os
from pathlib import Path

from gcipuinfo._mode import (
    MODE_OF_PROCESS,
    DeviceDiscoveryMode,
    DiscoverActivePartitionIPUs,
    DiscoverAllPartitionIPUs,
)
from popple.device.events import read_event
from popple.device.faults import parse_device_options
from popple.device.views import View, look
from popple.errors import PoppleError

_MISSING = "N/A"
# A simulated fault -> how the health check names what it breaks.
_ERRORS = {"soc": "device", "memory": "device", "host": "connection"}


class EventSeverity(enum.Enum):
    """How grave the event of a record is."""

    info = 0
    warning = 1
    error = 2


class gcipuinfo:
    """An inventory of the devices of the active partition, or of all partitions.

    Attributes are read once, and again on `updateData` or, in update mode, on each
    query.
    """

    keyRecordPath = "event record path"
    keyTimestamp = "timestamp"
    keySeverity = "severity"
    keyCommandLine = "command line"
    keyPid = "pid"
    keyAttachedIPUs = "attached ipus"
    keySpecificIPUs = "specific ipus"
    keyAttachedIPUHosts = "attached ipu hosts"
    keySpecificIPUHosts = "specific ipu hosts"
    keyPartition = "partition"
    keyDescription = "description"

    def __init__(
        self, discoveryMode: DeviceDiscoveryMode = DiscoverActivePartitionIPUs
    ) -> None:
        MODE_OF_PROCESS.choose(discoveryMode)
        self._at_all = discoveryMode is DiscoverAllPartitionIPUs
        self._is_updating = False
        self._devices = self._read()

    def updateData(self) -> bool:
        """Read all attributes again; False if that failed."""
        try:
            self._devices = self._read()
        except PoppleError:
            return False
        return True

    def setUpdateMode(self, autoUpdate: bool) -> None:
        """Whether each query reads the attributes again."""
        self._is_updating = autoUpdate

    def getDevices(self) -> list[dict[str, str]]:
        """The attributes of every single IPU."""
        return [dict(device) for device in self._query()]

    def getDevicesAsJSON(self) -> str:
        """The same as JSON, as gc-inventory prints it."""
        return json.dumps({"devices": self._query()})

    def getNamedAttributeForAll(self, attributeName: str) -> list[str]:
        """One attribute of every IPU."""
        return [device.get(attributeName, _MISSING) for device in self._query()]

    def getNamedAttributeForDevice(self, deviceId: int, attributeName: str) -> str:
        """One attribute of one IPU."""
        for device in self._query():
            if device["id"] == str(deviceId):
                return device.get(attributeName, _MISSING)
        last = len(self._devices) - 1
        raise ValueError(f"There is no IPU {deviceId}: their ids are 0 to {last}.")

    def getLastAppEventRecord(self, eventRecordPath: str = "") -> dict[str, str]:
        """The last event that a program recorded there; empty if there is none.

        Without a path, the directory that IPU_APP_EVENT_RECORD_PATH names.
        """
        path = eventRecordPath or os.environ.get("IPU_APP_EVENT_RECORD_PATH", "")
        return dict(read_event(Path(path))) if path else {}

    def getLastAppEventRecordAsJSON(self, eventRecordPath: str = "") -> str:
        """The same as JSON."""
        return json.dumps(self.getLastAppEventRecord(eventRecordPath))

    def checkHealthOfDevices(self) -> str:
        """The IPUs that do not work, by host, as JSON; `{}` if all do.

        A virtual IPU fails where a fault is simulated on it (GCDA_OPTIONS), or where
        its locks cannot be read.
        """
        try:
            options = parse_device_options(os.environ.get("GCDA_OPTIONS", ""))
            views = look(at_all=self._at_all)
        except PoppleError as error:
            return json.dumps({"error": str(error)})
        errors = {f.ipu: _ERRORS[f.kind] for f in options.faults if f.kind in _ERRORS}
        hosts: dict[str, list[dict[str, str]]] = {}
        for view in views:
            for host, found in _find_failing(view, errors):
                hosts.setdefault(host, []).append(found)
        return json.dumps({"hosts": hosts} if hosts else {})

    def _query(self) -> list[dict[str, str]]:
        if self._is_updating:
            self._devices = self._read()
        return self._devices

    def _read(self) -> list[dict[str, str]]:
        views = look(at_all=self._at_all)
        return [chip for view in views for chip in view.describe_chips()]


def _find_failing(
    view: View, errors: dict[int, str]
) -> list[tuple[str, dict[str, str]]]:
    """The failing IPUs of a machine, each with its host."""
    return [
        (
            chip.get("ipuof host", "localhost"),
            {
                "error": errors[int(chip["id"])],
                "id": chip["id"],
                "partition": view.name,
                "board ipu index": chip["board ipu index"],
            },
        )
        for chip in view.describe_chips()
        if int(chip["id"]) in errors
    ]
