"""Information about IPU devices, under the names that monitoring programs import.

    inventory = gcipuinfo.gcipuinfo()
    inventory.setUpdateMode(True)
    for device in inventory.getDevices():
        print(device[gcipuinfo.IpuPower])

Devices are virtual; what changes about them is modelled from the programs that run.
Labels are the keys of attributes in capitals: `IpuPower` is "ipu power".
"""

from gcipuinfo._inventory import EventSeverity, gcipuinfo
from gcipuinfo._labels import (
    AverageBoardTemp,
    AverageDieTemp,
    BoardIpuIndex,
    BoardSerialNumber,
    BoardType,
    BoardVariant,
    Clock,
    DriverVersion,
    FirmwareMajorVersion,
    FirmwareMinorVersion,
    FirmwarePatchVersion,
    FirmwareVersion,
    Id,
    IpuArchitecture,
    IpuErrorState,
    IpuofHost,
    IpuofPartitionId,
    IpuPower,
    IpuUtilisation,
    IpuUtilisationSession,
    LinkCorrectableErrorCount,
    LinkSpeed,
    LinkWidth,
    NumaNode,
    PciePhysicalSlot,
    PciId,
    ProcessStartTime,
    RemoteBuffersSupported,
    Target,
    TotalBoardPower,
    UserExecutable,
    UserName,
    UserProcessId,
)
from gcipuinfo._mode import (
    DeviceDiscoveryMode,
    DiscoverActivePartitionIPUs,
    DiscoverAllPartitionIPUs,
)

__all__ = [
    "AverageBoardTemp",
    "AverageDieTemp",
    "BoardIpuIndex",
    "BoardSerialNumber",
    "BoardType",
    "BoardVariant",
    "Clock",
    "DeviceDiscoveryMode",
    "DiscoverActivePartitionIPUs",
    "DiscoverAllPartitionIPUs",
    "DriverVersion",
    "EventSeverity",
    "FirmwareMajorVersion",
    "FirmwareMinorVersion",
    "FirmwarePatchVersion",
    "FirmwareVersion",
    "Id",
    "IpuArchitecture",
    "IpuErrorState",
    "IpuPower",
    "IpuUtilisation",
    "IpuUtilisationSession",
    "IpuofHost",
    "IpuofPartitionId",
    "LinkCorrectableErrorCount",
    "LinkSpeed",
    "LinkWidth",
    "NumaNode",
    "PciId",
    "PciePhysicalSlot",
    "ProcessStartTime",
    "RemoteBuffersSupported",
    "Target",
    "TotalBoardPower",
    "UserExecutable",
    "UserName",
    "UserProcessId",
    "gcipuinfo",
]
