"""Virtual machines: ids, attach and release, locks between processes, telemetry.

In: names, the environment, a `System`. Out: numbered devices as on the real machine,
and leases on them that no other process can hold at the same time; a killed process
lets go of its own.
"""

from popple.device.activity import Activity, ActivityMeter
from popple.device.lease import Lease
from popple.device.machine import Machine
from popple.device.machines import find_machine, list_machines
from popple.device.numbering import Device, number_devices
from popple.device.partitions import (
    Partition,
    create_partition,
    find_partition,
    get_partition,
    list_partitions,
    remove_partition,
)
from popple.device.pod import Pod
from popple.device.pods import (
    CreatedPod,
    create_pod,
    find_pod,
    get_pod,
    list_pods,
    remove_pod,
)
from popple.device.registry import Holder
from popple.device.telemetry import Telemetry, list_board, read_telemetry

__all__ = [
    "Activity",
    "ActivityMeter",
    "CreatedPod",
    "Device",
    "Holder",
    "Lease",
    "Machine",
    "Partition",
    "Pod",
    "Telemetry",
    "create_partition",
    "create_pod",
    "find_machine",
    "find_partition",
    "find_pod",
    "get_partition",
    "get_pod",
    "list_board",
    "list_machines",
    "list_partitions",
    "list_pods",
    "number_devices",
    "read_telemetry",
    "remove_partition",
    "remove_pod",
]
