"""Virtual devices of a pod: ids, attach and release, locks between processes.

In: a `System`. Out: numbered devices as on the real machine, and leases on them that
no other process can hold at the same time; a killed process lets go of its own.
"""

from popple.device.pod import Device, Lease, Pod
from popple.device.registry import Holder

__all__ = ["Device", "Holder", "Lease", "Pod"]
