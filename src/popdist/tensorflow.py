"""The IPU configuration of TensorFlow for a process that a launcher started."""

from __future__ import annotations

from typing import Any

from . import (
    checkNumIpusPerReplica,
    getInstanceIndex,
    getNumInstances,
    getNumIpusPerReplica,
    getNumLocalReplicas,
)

__all__ = ["set_ipu_config"]


def set_ipu_config(
    config: Any, ipus_per_replica: int | None = None, configure_device: bool = True
) -> Any:
    """Write into an `IPUConfig` which instance this is, and which IPUs it has.

    Returns the configuration.

    Without `ipus_per_replica` the number that the launcher was told counts. With
    `configure_device=False` the choice of IPUs is the program's.
    """
    if ipus_per_replica is not None:
        checkNumIpusPerReplica(ipus_per_replica)
    if configure_device:
        per_replica = ipus_per_replica or getNumIpusPerReplica()
        config.auto_select_ipus = getNumLocalReplicas() * per_replica
    distribution = config.experimental.multi_replica_distribution
    distribution.process_count = getNumInstances()
    distribution.process_index = getInstanceIndex()
    return config
