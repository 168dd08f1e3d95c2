"""Which device of the machine in force an instance is to use."""

from __future__ import annotations

from popple.device import Pod, find_machine
from popple.distributed import Instance
from popple.errors import PoppleError
from popple.session.settings import read_settings


def device_of(instance: Instance, ipus_per_replica: int = 0) -> int:
    """Id of the device with IPUs for all replicas of an instance.

    Devices of a size are handed out in the order of the instances of a host.
    """
    count = instance.local_replicas * (ipus_per_replica or instance.ipus_per_replica)
    try:
        pod = Pod(find_machine(read_settings().target))
    except PoppleError as error:
        raise RuntimeError(str(error)) from error
    devices = pod.find(count)
    if instance.local_index >= len(devices):
        raise RuntimeError(
            f"{pod.system.name} has {len(devices)} devices with {count} IPUs, too few "
            f"for instance {instance.local_index} of this host. POPPLE_TARGET names a "
            "larger system."
        )
    return devices[instance.local_index].id
