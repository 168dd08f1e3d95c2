"""Which of several processes this one is, as programs started by `poprun` ask.

The launcher tells every process through POPDIST_* variables. A program started
without it is alone: one instance with one replica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from popple import distributed as _distributed
from popple import errors as _errors

from ._backend import BACKEND as _BACKEND

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
    "initializeBackend",
    "isBackendInitialized",
    "isPopdistEnvSet",
    "synchronize",
]


def _instance() -> _distributed.Instance:
    """Which instance this is; RuntimeError if the variables make no sense."""
    try:
        return _distributed.get_instance()
    except _errors.UsageError as error:
        raise RuntimeError(str(error)) from error


def isPopdistEnvSet() -> bool:
    """Whether a launcher started this process."""
    return _distributed.find_instance() is not None


def getNumTotalReplicas() -> int:
    """Replicas of all instances together."""
    return _instance().total_replicas


def getNumLocalReplicas() -> int:
    """Replicas of this instance."""
    return _instance().local_replicas


def getNumIpusPerReplica() -> int:
    """IPUs of one replica, as told to the launcher."""
    return _instance().ipus_per_replica


def getReplicaIndexOffset() -> int:
    """Number of this instance's first replica among all replicas."""
    return _instance().replica_offset


def getNumInstances() -> int:
    """Processes that run the program together; all have as many replicas."""
    return _instance().count


def getInstanceIndex() -> int:
    """Number of this process, from 0."""
    return _instance().index


def getLocalInstanceIndex() -> int:
    """Number of this process among those of the same host."""
    return _instance().local_index


def getDeviceId(ipusPerReplica: int = 0) -> int:
    """The device with IPUs for all local replicas that is this instance's.

    With 0 the number of IPUs per replica is the launcher's. Instances of a host have
    devices side by side.
    """
    # Here: most programs never ask, and need not load the machine's description.
    from ._devices import device_of

    return device_of(_instance(), ipusPerReplica)


def checkNumIpusPerReplica(ipus_per_replica: int) -> bool:
    """True if program and launcher agree on the IPUs of a replica, else an error."""
    told = getNumIpusPerReplica()
    if isPopdistEnvSet() and told != ipus_per_replica:
        raise RuntimeError(
            f"The program uses {ipus_per_replica} IPUs per replica, but poprun was "
            f"told {told}. Pass --ipus-per-replica={ipus_per_replica}."
        )
    return True


def init() -> None:
    """Get ready to talk to the other instances: waits until all are here."""
    _BACKEND.start(_instance())


def initializeBackend() -> None:
    """The same as `init`."""
    init()


def isBackendInitialized() -> bool:
    """Whether `init` has been called."""
    return _BACKEND.is_started


def finalizeBackend() -> None:
    """Stop talking to other instances."""
    _BACKEND.stop()


def synchronize() -> None:
    """Wait until all instances are here."""
    _BACKEND.wait(_instance())


def execute_on_instances(
    instances: Iterable[int],
    function: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Call `function` if this instance is among them; else return None.

    Inside, `synchronize` waits for these instances alone.
    """
    chosen = frozenset(instances)
    if getInstanceIndex() not in chosen:
        return None
    with _BACKEND.among(chosen):
        return function(*args, **kwargs)
