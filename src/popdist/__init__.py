"""Which of several processes this one is, as programs started by `poprun` ask.

The launcher tells every process through POPDIST_* variables. A program started
without it is alone: one instance with one replica.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

__all__ = [
    "checkNumIpusPerReplica",
    "execute_on_instances",
    "finalizeBackend",
    "getDeviceId",
    "getInstanceIndex",
    "getLocalInstanceIndex",
    "getNumInstances",
    "getNumIpusPerReplica",
    "getNumLocalReplicas",
    "getNumTotalReplicas",
    "getReplicaIndexOffset",
    "init",
    "isBackendInitialized",
    "isPopdistEnvSet",
    "synchronize",
]

_TOTAL_REPLICAS = "POPDIST_NUM_TOTAL_REPLICAS"
_LOCAL_REPLICAS = "POPDIST_NUM_LOCAL_REPLICAS"
_IPUS_PER_REPLICA = "POPDIST_NUM_IPUS_PER_REPLICA"
_REPLICA_OFFSET = "POPDIST_REPLICA_INDEX_OFFSET"
_LOCAL_INSTANCE = "POPDIST_LOCAL_INSTANCE_INDEX"


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    try:
        return int(text)
    except ValueError as error:
        raise RuntimeError(
            f"{name} is {text!r}, not a number. poprun sets it: start the program with "
            "that, or unset the POPDIST_ variables."
        ) from error


def isPopdistEnvSet() -> bool:
    """Whether a launcher started this process."""
    return all(name in os.environ for name in (_TOTAL_REPLICAS, _LOCAL_REPLICAS))


def getNumTotalReplicas() -> int:
    """Replicas of all instances together."""
    return _number(_TOTAL_REPLICAS, 1)


def getNumLocalReplicas() -> int:
    """Replicas of this instance."""
    return _number(_LOCAL_REPLICAS, 1)


def getNumIpusPerReplica() -> int:
    """IPUs of one replica, as told to the launcher."""
    return _number(_IPUS_PER_REPLICA, 1)


def getReplicaIndexOffset() -> int:
    """Number of this instance's first replica among all replicas."""
    return _number(_REPLICA_OFFSET, 0)


def getNumInstances() -> int:
    """Processes that run the program together; all have as many replicas."""
    return getNumTotalReplicas() // getNumLocalReplicas()


def getInstanceIndex() -> int:
    """Number of this process, from 0."""
    return getReplicaIndexOffset() // getNumLocalReplicas()


def getLocalInstanceIndex() -> int:
    """Number of this process among those of the same host."""
    return _number(_LOCAL_INSTANCE, 0)


def getDeviceId(ipusPerReplica: int = 0) -> int:
    """Device the instance is to use, if devices are handed out in order.

    With 0 the number of IPUs per replica is the launcher's.
    """
    return getLocalInstanceIndex()


def checkNumIpusPerReplica(ipus_per_replica: int) -> None:
    """Error unless the program and the launcher agree."""
    told = getNumIpusPerReplica()
    if isPopdistEnvSet() and told != ipus_per_replica:
        raise RuntimeError(
            f"The program uses {ipus_per_replica} IPUs per replica, but poprun was "
            f"told {told}. Pass --ipus-per-replica={ipus_per_replica}."
        )


def init() -> None:
    """Get ready to talk to the other instances."""
    _check_alone("init()")


def isBackendInitialized() -> bool:
    """Whether `init` has connected this instance to others: there are none."""
    return False


def finalizeBackend() -> None:
    """Stop talking to other instances."""


def synchronize() -> None:
    """Wait until all instances are here."""
    _check_alone("synchronize()")


def execute_on_instances(
    instances: Iterable[int], function: Callable[..., Any], *args: Any
) -> Any:
    """Call `function(*args)` if this instance is among them; else return None."""
    return function(*args) if getInstanceIndex() in set(instances) else None


def _check_alone(what: str) -> None:
    if getNumInstances() > 1:
        raise RuntimeError(
            f"popdist.{what}: talking to other instances is not available yet. Run the "
            "program with one instance and several replicas."
        )
